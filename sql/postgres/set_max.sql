-- The operator's statement.
UPDATE permitq_semaphore SET max_permits = $1 WHERE name = $2
