-- READ COMMITTED: each statement sees what was committed before it, so a read after a lock is fresh.
BEGIN ISOLATION LEVEL READ COMMITTED
