-- A job has a new run.
UPDATE permitq_job SET last_task = $1 WHERE name = $2
