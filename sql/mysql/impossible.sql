-- States that nothing of ours can produce; each row names one.
SELECT CONCAT('task ', id, ' needs semaphore ', semaphore, ', which does not exist') FROM (
    SELECT id, semaphore FROM permitq_task FORCE INDEX (permitq_task_ready)
     WHERE state IN ('pending', 'scheduled', 'blocked', 'running')
       AND semaphore NOT IN (SELECT name FROM permitq_semaphore) LIMIT 100) t
UNION ALL
SELECT CONCAT('a cooling permit belongs to semaphore ', semaphore, ', which does not exist') FROM (
    SELECT semaphore FROM permitq_cooling WHERE semaphore NOT IN (SELECT name FROM permitq_semaphore) LIMIT 100) k
UNION ALL
SELECT CONCAT('task ', t.id, ' runs attempt ', t.claim_no, ', which the log says has ended')
  FROM permitq_task t FORCE INDEX (permitq_task_ready)
  STRAIGHT_JOIN permitq_attempt a FORCE INDEX (PRIMARY) ON a.task = t.id AND a.claim_no = t.claim_no
 WHERE t.state = 'running'
