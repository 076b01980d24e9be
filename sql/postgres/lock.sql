-- The permit first: lock the semaphore and read what is free under that lock. A waiting lock answers with the newest
-- version of the row; anything but plain columns of it would come from a snapshot older than the lock.
SELECT max_permits, in_use FROM permitq_semaphore WHERE name = $1 FOR NO KEY UPDATE
