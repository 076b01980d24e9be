-- Then the task: the first ? due tasks of one (semaphore, kind), in the order of the claim (urgency is -priority). Whoever
-- may hold the semaphore waits for no task.
-- Nothing where the kind (its downstream is the fifth ?), the semaphore or the fleet is paused; what has 'expired' is to be called off.
SELECT id, claim_no + 1 AS claim_no, kind, semaphore, biz_key, payload, priority,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', run_at) AS run_at,
       attempts + 1 AS attempts, max_attempts, on_abandon, timeout, coalesce(expires_at <= UTC_TIMESTAMP(6), 0) AS expired,
       (SELECT max_permits - in_use FROM permitq_semaphore WHERE name = permitq_task.semaphore) AS free
  FROM permitq_task FORCE INDEX (permitq_task_ready)
 WHERE state = 'pending' AND semaphore = ? AND kind = ?
   AND NOT EXISTS (SELECT 1 FROM permitq_pause p
                    WHERE p.what = 'fleet' OR (p.what = 'semaphore' AND p.name = ?) OR (p.what = 'kind' AND p.name = ?)
                       OR (p.what = 'downstream' AND p.name = ?))
 ORDER BY urgency, permitq_task.run_at, permitq_task.id
 LIMIT ?
   FOR UPDATE SKIP LOCKED
