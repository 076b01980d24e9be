-- Scheduled tasks whose instant has come become pending, oldest first, at most $1.
UPDATE permitq_task SET state = 'pending'
 WHERE id = ANY (ARRAY(SELECT id FROM permitq_task WHERE state = 'scheduled' AND run_at <= statement_timestamp()
                        ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED))
