-- Tasks whose deadline has passed and that do not run, at most so many, locked. Whoever is at one of them is passed by.
SELECT id FROM permitq_task
 WHERE expires_at <= statement_timestamp() AND finished_at IS NULL AND state || '' <> 'running'
 ORDER BY expires_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
