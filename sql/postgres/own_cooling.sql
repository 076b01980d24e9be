-- The cooling of one attempt, locked: its call is known to be over. Where a reclaimer has it already, that one frees it.
SELECT id, semaphore, task, claim_no FROM permitq_cooling WHERE task = $1 AND claim_no = $2 AND consumer = $3
   FOR UPDATE SKIP LOCKED
