-- Calls off a task that does not run yet.
UPDATE permitq_task SET state = 'cancelled', finished_at = statement_timestamp(), waiting_for = 0, error = $1
 WHERE id = $2 AND state IN ('blocked', 'scheduled', 'pending')
