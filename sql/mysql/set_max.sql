-- The operator's statement.
UPDATE permitq_semaphore SET max_permits = ? WHERE name = ?
