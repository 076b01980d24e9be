-- The cooling of one attempt, locked: its call is known to be over. Where a reclaimer has it already, that one frees it.
SELECT id, semaphore, task, claim_no FROM permitq_cooling WHERE task = ? AND claim_no = ? AND consumer = ?
   FOR UPDATE SKIP LOCKED
