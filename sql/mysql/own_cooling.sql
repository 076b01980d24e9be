-- The cooling of one attempt, locked: its call is known to be over. Where a reclaimer has it already, that one frees it.
-- Found without a lock and locked through PRIMARY: SKIP LOCKED would keep the lock on the other index's entry, and whoever
-- deletes the row would wait for it.
SELECT k.id, k.semaphore, k.task, k.claim_no
  FROM (SELECT id FROM permitq_cooling WHERE task = ? AND claim_no = ? AND consumer = ? LIMIT 1) o
  STRAIGHT_JOIN permitq_cooling k FORCE INDEX (PRIMARY) ON k.id = o.id
   FOR UPDATE SKIP LOCKED
