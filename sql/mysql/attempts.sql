-- The attempts of a task, oldest first.
SELECT claim_no, consumer,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', claimed_at) AS claimed_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', called_at) AS called_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ended_at) AS ended_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', permit_released_at) AS permit_released_at,
       outcome, status, error, ended_by,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', late_at) AS late_at, late_status, late_outcome, late_answer
  FROM permitq_attempt WHERE task = ? ORDER BY claim_no
