-- States that nothing of ours can produce; each row names one. Tasks that wait are looked at by their semaphores, a loose
-- scan of the index; what is scheduled or blocked shows when it is due.
SELECT CONCAT('task ', id, ' needs semaphore ', semaphore, ', which does not exist') FROM (
    SELECT t.id, t.semaphore FROM (
        SELECT state, semaphore FROM permitq_task FORCE INDEX (permitq_task_ready)
         WHERE state = 'pending' GROUP BY state, semaphore
        HAVING semaphore NOT IN (SELECT name FROM permitq_semaphore)) n
      STRAIGHT_JOIN permitq_task t FORCE INDEX (permitq_task_ready) ON t.state = 'pending' AND t.semaphore = n.semaphore
     LIMIT 100) t
UNION ALL
SELECT CONCAT('task ', id, ' needs semaphore ', semaphore, ', which does not exist')
  FROM permitq_task FORCE INDEX (permitq_task_ready)
 WHERE state = 'running' AND semaphore NOT IN (SELECT name FROM permitq_semaphore)
UNION ALL
SELECT CONCAT('a cooling permit belongs to semaphore ', semaphore, ', which does not exist') FROM (
    SELECT semaphore FROM permitq_cooling WHERE semaphore NOT IN (SELECT name FROM permitq_semaphore) LIMIT 100) k
UNION ALL
SELECT CONCAT('task ', t.id, ' runs attempt ', t.claim_no, ', which the log says has ended')
  FROM permitq_task t FORCE INDEX (permitq_task_ready)
  STRAIGHT_JOIN permitq_attempt a FORCE INDEX (PRIMARY) ON a.task = t.id AND a.claim_no = t.claim_no
 WHERE t.state = 'running'
