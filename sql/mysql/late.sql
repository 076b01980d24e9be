-- The late answer of a lost claim: evidence on its attempt, never state. Only the attempt's own consumer writes it, once.
UPDATE permitq_attempt SET late_at = UTC_TIMESTAMP(6), late_status = ?, late_outcome = ?, late_answer = ?
 WHERE task = ? AND claim_no = ? AND consumer = ? AND late_at IS NULL
