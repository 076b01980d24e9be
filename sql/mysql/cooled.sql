-- Coolings of one semaphore whose calls must be over, at most ?.
SELECT id, semaphore, task, claim_no FROM permitq_cooling FORCE INDEX (permitq_cooling_until)
 WHERE until <= UTC_TIMESTAMP(6) AND semaphore = ?
 ORDER BY until, id LIMIT ?
   FOR UPDATE SKIP LOCKED
