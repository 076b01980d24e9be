-- The last attempts of a semaphore, latest claim first: how long calls take and permits are held.
SELECT kind, outcome, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at) AS claimed_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ended_at) AS ended_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', permit_released_at) AS permit_released_at
  FROM permitq_attempt a FORCE INDEX (permitq_attempt_claimed)
 WHERE semaphore = ? ORDER BY a.claimed_at DESC LIMIT ?
