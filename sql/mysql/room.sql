-- For a hand-over: how far in_use is above a lowered max, without the lock. Stale by a commit at most.
SELECT max_permits, in_use FROM permitq_semaphore WHERE name = ?
