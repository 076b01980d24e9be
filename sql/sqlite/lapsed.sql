-- Tasks whose deadline has passed and that do not run, at most so many, locked. Whoever is at one of them is passed by.
SELECT id FROM permitq_task INDEXED BY permitq_task_expires
 WHERE expires_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AND finished_at IS NULL AND state || '' <> 'running'
 ORDER BY expires_at, id LIMIT $1
