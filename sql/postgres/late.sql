-- The late answer of a lost claim: evidence on its attempt, never state. Only the attempt's own consumer writes it, once.
UPDATE permitq_attempt SET late_at = clock_timestamp(), late_status = $1, late_outcome = $2, late_answer = $3
 WHERE task = $4 AND claim_no = $5 AND consumer = $6 AND late_at IS NULL
