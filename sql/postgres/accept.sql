-- A person takes a late answer as the result of a task that does not run and has none.
UPDATE permitq_task SET state = 'succeeded', finished_at = statement_timestamp(), result = $1, error = NULL
 WHERE id = $2 AND state IN ('scheduled', 'pending', 'failed')
