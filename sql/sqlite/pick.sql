-- Then the task: the first $3 due tasks of one (semaphore, kind), in the order of the claim.
SELECT id, claim_no + 1 AS claim_no, kind, semaphore, biz_key, payload, priority, run_at, attempts + 1 AS attempts,
       max_attempts, on_abandon, timeout,
       (SELECT max_permits - in_use FROM permitq_semaphore WHERE name = permitq_task.semaphore) AS free
  FROM permitq_task
 WHERE state = 'pending' AND semaphore = $1 AND kind = $2
 ORDER BY priority DESC, run_at, id
 LIMIT $3
