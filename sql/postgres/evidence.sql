-- The last late answer of a task that says it is done.
SELECT claim_no, late_answer FROM permitq_attempt
 WHERE task = $1 AND late_outcome = 'succeeded' ORDER BY claim_no DESC LIMIT 1
