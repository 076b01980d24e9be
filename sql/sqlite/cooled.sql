-- Coolings of one semaphore whose calls must be over as of an instant (microseconds), at most $3. The caller has compared that
-- instant with its own clock; the host's may have stepped since.
SELECT id, semaphore, task, claim_no FROM permitq_cooling
 WHERE until <= $1 AND semaphore = $2
 ORDER BY id LIMIT $3
