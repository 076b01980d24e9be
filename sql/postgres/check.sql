-- Has a pass of upkeep anything to do? One read, so that an idle fleet costs next to nothing. The steps themselves
-- restate what is asked here; $1 is the lease in microseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
       (EXISTS (SELECT 1 FROM permitq_consumer
                 WHERE state <> 'gone' AND lease_until < statement_timestamp()))::int AS expired,
       (EXISTS (SELECT 1 FROM permitq_task t
                 WHERE t.state = 'running'
                   AND (NOT EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = t.consumer AND c.state <> 'gone')
                        OR t.until + $1 * interval '1 microsecond' < statement_timestamp())))::int AS abandoned,
       (EXISTS (SELECT 1 FROM permitq_cooling WHERE until <= statement_timestamp()))::int AS cooled,
       (EXISTS (SELECT 1 FROM permitq_task
                 WHERE expires_at <= statement_timestamp() AND finished_at IS NULL AND state || '' <> 'running'))::int AS lapsed,
       (EXISTS (SELECT 1 FROM permitq_semaphore s
                 WHERE s.in_use <> (SELECT count(*) FROM permitq_task t WHERE t.state = 'running' AND t.semaphore = s.name)
                                 + (SELECT count(*) FROM permitq_cooling k WHERE k.semaphore = s.name)))::int AS drifted,
       (EXISTS (SELECT 1 FROM permitq_task WHERE dependents = 1 AND finished_at IS NOT NULL))::int AS untold
