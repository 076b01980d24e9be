-- Then the task: the first $6 due tasks of one (semaphore, kind), in the order of the claim. Whoever may hold the
-- semaphore waits for no task.
-- Nothing where the kind (its downstream is $5), the semaphore or the fleet is paused; what has 'expired' is to be called off.
SELECT id, claim_no + 1 AS claim_no, kind, semaphore, biz_key, payload, priority,
       (extract(epoch FROM run_at) * 1000000)::bigint AS run_at,
       attempts + 1 AS attempts, max_attempts, on_abandon, timeout, coalesce(expires_at <= statement_timestamp(), false)::int AS expired,
       (SELECT max_permits - in_use FROM permitq_semaphore WHERE name = permitq_task.semaphore) AS free
  FROM permitq_task
 WHERE state = 'pending' AND semaphore = $1 AND kind = $2
   AND NOT EXISTS (SELECT 1 FROM permitq_pause p
                    WHERE p.what = 'fleet' OR (p.what = 'semaphore' AND p.name = $3) OR (p.what = 'kind' AND p.name = $4)
                       OR (p.what = 'downstream' AND p.name = $5))
 ORDER BY priority DESC, permitq_task.run_at, id
 LIMIT $6
   FOR UPDATE SKIP LOCKED
