-- Has a pass of upkeep anything to do? One read, so that an idle fleet costs next to nothing. The steps themselves
-- restate what is asked here; $1 is the lease in microseconds.
SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now,
       EXISTS (SELECT 1 FROM permitq_consumer
                WHERE state <> 'gone'
                  AND lease_until < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) AS expired,
       EXISTS (SELECT 1 FROM permitq_task t INDEXED BY permitq_task_running
                WHERE t.state = 'running'
                  AND (NOT EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = t.consumer AND c.state <> 'gone')
                       OR t.until + $1 < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)) AS abandoned,
       EXISTS (SELECT 1 FROM permitq_cooling
                WHERE until <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) AS cooled,
       EXISTS (SELECT 1 FROM permitq_task INDEXED BY permitq_task_expires
                WHERE expires_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AND finished_at IS NULL AND state || '' <> 'running') AS lapsed,
       EXISTS (SELECT 1 FROM permitq_semaphore s
                WHERE s.in_use <> (SELECT count(*) FROM permitq_task t WHERE t.state = 'running' AND t.semaphore = s.name)
                                + (SELECT count(*) FROM permitq_cooling k WHERE k.semaphore = s.name)) AS drifted,
       EXISTS (SELECT 1 FROM permitq_task WHERE dependents = 1 AND finished_at IS NOT NULL) AS untold
