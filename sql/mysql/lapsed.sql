-- Tasks whose deadline has passed and that do not run, at most so many, locked. Whoever is at one of them is passed by.
SELECT id FROM permitq_task FORCE INDEX (permitq_task_expires)
 WHERE live_expires_at <= UTC_TIMESTAMP(6) AND state <> 'running'
 ORDER BY live_expires_at, id LIMIT ? FOR UPDATE SKIP LOCKED
