-- Scheduled tasks whose instant has come become pending, oldest first, at most $1.
UPDATE permitq_task SET state = 'pending'
 WHERE id IN (SELECT id FROM permitq_task WHERE state = 'scheduled' AND run_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
               ORDER BY run_at, id LIMIT $1)
