-- Has a pass of upkeep anything to do? One read, so that an idle fleet costs next to nothing. The steps themselves
-- restate what is asked here; ? is the lease in microseconds.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now,
       EXISTS (SELECT 1 FROM permitq_consumer WHERE state <> 'gone' AND lease_until < UTC_TIMESTAMP(6)) AS expired,
       EXISTS (SELECT 1 FROM permitq_task t FORCE INDEX (permitq_task_ready)
                WHERE t.state = 'running'
                  AND (NOT EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = t.consumer AND c.state <> 'gone')
                       OR TIMESTAMPADD(MICROSECOND, ?, t.until) < UTC_TIMESTAMP(6))) AS abandoned,
       EXISTS (SELECT 1 FROM permitq_cooling WHERE until <= UTC_TIMESTAMP(6)) AS cooled,
       EXISTS (SELECT 1 FROM permitq_task FORCE INDEX (permitq_task_expires)
                WHERE live_expires_at <= UTC_TIMESTAMP(6) AND state <> 'running') AS lapsed,
       EXISTS (SELECT 1 FROM permitq_semaphore s
                WHERE s.in_use <> (SELECT count(*) FROM permitq_task t FORCE INDEX (permitq_task_ready)
                                    WHERE t.state = 'running' AND t.semaphore = s.name)
                                + (SELECT count(*) FROM permitq_cooling k WHERE k.semaphore = s.name)) AS drifted,
       EXISTS (SELECT 1 FROM permitq_task FORCE INDEX (permitq_task_untold) WHERE untold = 1) AS untold
