-- The permit first: lock the semaphore and read what is free under that lock. (BEGIN IMMEDIATE holds it already.)
SELECT max_permits, in_use FROM permitq_semaphore WHERE name = $1
