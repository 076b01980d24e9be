-- Coolings of one semaphore whose calls must be over, at most ?. Found without a lock and locked through PRIMARY, as
-- own_cooling.sql does.
SELECT k.id, k.semaphore, k.task, k.claim_no
  FROM (SELECT id FROM permitq_cooling FORCE INDEX (permitq_cooling_until)
         WHERE until <= UTC_TIMESTAMP(6) AND semaphore = ?
         ORDER BY until, id LIMIT ?) o
  STRAIGHT_JOIN permitq_cooling k FORCE INDEX (PRIMARY) ON k.id = o.id
   FOR UPDATE SKIP LOCKED
