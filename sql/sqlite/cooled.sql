-- Coolings of one semaphore whose calls must be over, at most $2.
SELECT id, semaphore, task, claim_no FROM permitq_cooling
 WHERE until <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AND semaphore = $1
 ORDER BY id LIMIT $2
