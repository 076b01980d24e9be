-- A person takes a late answer as the result of a task that does not run and has none.
UPDATE permitq_task SET state = 'succeeded', finished_at = UTC_TIMESTAMP(6), result = ?, error = NULL
 WHERE id = ? AND state IN ('scheduled', 'pending', 'failed')
