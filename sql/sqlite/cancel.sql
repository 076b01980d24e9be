-- Calls off a task that does not run yet.
UPDATE permitq_task SET state = 'cancelled', finished_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000,
       waiting_for = 0, error = $1
 WHERE id = $2 AND state IN ('blocked', 'scheduled', 'pending')
