-- The longest time in microseconds that any permit now taken may be held, and the highest cap this semaphore ever had.
SELECT max(coalesce((SELECT max(until - started_at) FROM permitq_task WHERE state = 'running'), 0),
           coalesce((SELECT max(until - since) FROM permitq_cooling), 0)),
       coalesce((SELECT max(max_permits) FROM permitq_limit WHERE semaphore = $1), 0)
