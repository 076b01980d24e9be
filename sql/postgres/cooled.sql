-- Coolings of one semaphore whose calls must be over as of an instant (microseconds), at most $3. The caller has compared that
-- instant with its own clock; this server's may have stepped since.
SELECT id, semaphore, task, claim_no FROM permitq_cooling
 WHERE until <= 'epoch'::timestamptz + $1 * interval '1 microsecond' AND semaphore = $2
 ORDER BY id LIMIT $3
   FOR UPDATE SKIP LOCKED
