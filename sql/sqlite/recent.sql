-- The last $2 attempts of a semaphore, latest claim first: how long calls take and permits are held.
SELECT kind, outcome, claimed_at, ended_at, permit_released_at
  FROM permitq_attempt WHERE semaphore = $1 ORDER BY permitq_attempt.claimed_at DESC LIMIT $2
