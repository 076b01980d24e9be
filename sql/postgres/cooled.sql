-- Coolings of one semaphore whose calls must be over, at most $2.
SELECT id, semaphore, task, claim_no FROM permitq_cooling
 WHERE until <= statement_timestamp() AND semaphore = $1
 ORDER BY id LIMIT $2
   FOR UPDATE SKIP LOCKED
