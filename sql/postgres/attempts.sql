-- The attempts of a task, oldest first.
SELECT claim_no, consumer,
       (extract(epoch FROM claimed_at) * 1000000)::bigint AS claimed_at,
       (extract(epoch FROM called_at) * 1000000)::bigint AS called_at,
       (extract(epoch FROM ended_at) * 1000000)::bigint AS ended_at,
       (extract(epoch FROM permit_released_at) * 1000000)::bigint AS permit_released_at,
       outcome, status, error, ended_by,
       (extract(epoch FROM late_at) * 1000000)::bigint AS late_at, late_status, late_outcome, late_answer
  FROM permitq_attempt WHERE task = $1 ORDER BY claim_no
