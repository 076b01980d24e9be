-- The attempts of a task, oldest first.
SELECT claim_no, consumer, claimed_at, called_at, ended_at, permit_released_at, outcome, status, error, ended_by,
       late_at, late_status, late_outcome, late_answer
  FROM permitq_attempt WHERE task = $1 ORDER BY claim_no
