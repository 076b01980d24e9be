-- The permit first: lock the semaphore and read what is free under that lock.
SELECT max_permits, in_use FROM permitq_semaphore FORCE INDEX (PRIMARY) WHERE name = ? FOR UPDATE
