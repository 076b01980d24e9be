-- The late answer of a lost claim: evidence on its attempt, never state. Only the attempt's own consumer writes it, once.
UPDATE permitq_attempt SET late_at = clock_timestamp(), late_status = $1, late_answer = $2
 WHERE task = $3 AND claim_no = $4 AND consumer = $5 AND late_at IS NULL
