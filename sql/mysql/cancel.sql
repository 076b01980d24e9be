-- Calls off a task that does not run yet.
UPDATE permitq_task SET state = 'cancelled', finished_at = UTC_TIMESTAMP(6), waiting_for = 0, error = ?
 WHERE id = ? AND state IN ('blocked', 'scheduled', 'pending')
