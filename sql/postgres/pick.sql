-- Then the task: the first $3 due tasks of one (semaphore, kind), in the order of the claim. Whoever may hold the
-- semaphore waits for no task.
SELECT id, claim_no + 1 AS claim_no, kind, semaphore, biz_key, payload, priority,
       (extract(epoch FROM run_at) * 1000000)::bigint AS run_at,
       attempts + 1 AS attempts, max_attempts, on_abandon, timeout,
       (SELECT max_permits - in_use FROM permitq_semaphore WHERE name = permitq_task.semaphore) AS free
  FROM permitq_task
 WHERE state = 'pending' AND semaphore = $1 AND kind = $2
 ORDER BY priority DESC, permitq_task.run_at, id
 LIMIT $3
   FOR UPDATE SKIP LOCKED
