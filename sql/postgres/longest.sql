-- The longest time in microseconds that any permit now taken may be held, and the highest cap this semaphore ever had.
SELECT (extract(epoch FROM greatest(interval '0',
           (SELECT max(until - started_at) FROM permitq_task WHERE state = 'running'),
           (SELECT max(until - since) FROM permitq_cooling))) * 1000000)::bigint,
       coalesce((SELECT max(max_permits) FROM permitq_limit WHERE semaphore = $1), 0)
