-- Then the task: the first $6 due tasks of one (semaphore, kind), in the order of the claim.
-- Nothing where the kind (its downstream is $5), the semaphore or the fleet is paused; what has 'expired' is to be called off.
SELECT id, claim_no + 1 AS claim_no, kind, semaphore, biz_key, payload, priority, run_at, attempts + 1 AS attempts,
       max_attempts, on_abandon, timeout, coalesce(expires_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 0) AS expired,
       (SELECT max_permits - in_use FROM permitq_semaphore WHERE name = permitq_task.semaphore) AS free
  FROM permitq_task
 WHERE state = 'pending' AND semaphore = $1 AND kind = $2
   AND NOT EXISTS (SELECT 1 FROM permitq_pause p
                    WHERE p.what = 'fleet' OR (p.what = 'semaphore' AND p.name = $3) OR (p.what = 'kind' AND p.name = $4)
                       OR (p.what = 'downstream' AND p.name = $5))
 ORDER BY priority DESC, run_at, id
 LIMIT $6
