-- Coolings of one semaphore whose calls must be over as of an instant (microseconds), at most ?. The caller has compared that
-- instant with its own clock; UTC_TIMESTAMP may have stepped since. Found without a lock and locked through PRIMARY, as
-- own_cooling.sql does.
SELECT k.id, k.semaphore, k.task, k.claim_no
  FROM (SELECT id FROM permitq_cooling FORCE INDEX (permitq_cooling_until)
         WHERE until <= TIMESTAMPADD(MICROSECOND, ?, '1970-01-01') AND semaphore = ?
         ORDER BY until, id LIMIT ?) o
  STRAIGHT_JOIN permitq_cooling k FORCE INDEX (PRIMARY) ON k.id = o.id
   FOR UPDATE SKIP LOCKED
