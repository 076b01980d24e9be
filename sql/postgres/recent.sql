-- The last $2 attempts of a semaphore, latest claim first: how long calls take and permits are held.
SELECT kind, outcome, (extract(epoch FROM claimed_at) * 1000000)::bigint AS claimed_at,
       (extract(epoch FROM ended_at) * 1000000)::bigint AS ended_at,
       (extract(epoch FROM permit_released_at) * 1000000)::bigint AS permit_released_at
  FROM permitq_attempt a WHERE semaphore = $1 ORDER BY a.claimed_at DESC LIMIT $2
