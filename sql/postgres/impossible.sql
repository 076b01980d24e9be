-- States that nothing of ours can produce; each row names one. Tasks that wait are looked at by their semaphores, one index
-- step each; what is scheduled or blocked shows when it is due.
WITH RECURSIVE named (semaphore) AS (
    (SELECT semaphore FROM permitq_task WHERE state = 'pending' ORDER BY semaphore LIMIT 1)
    UNION ALL
    SELECT (SELECT t.semaphore FROM permitq_task t WHERE t.state = 'pending' AND t.semaphore > named.semaphore
             ORDER BY t.semaphore LIMIT 1)
      FROM named WHERE semaphore IS NOT NULL
), unknown (semaphore) AS MATERIALIZED (
    SELECT semaphore FROM named
     WHERE semaphore IS NOT NULL AND semaphore NOT IN (SELECT name FROM permitq_semaphore)
)
SELECT 'task ' || id || ' needs semaphore ' || semaphore || ', which does not exist' FROM (
    SELECT t.id, u.semaphore FROM unknown u
     CROSS JOIN LATERAL (SELECT id FROM permitq_task WHERE state = 'pending' AND semaphore = u.semaphore LIMIT 100) t) t
UNION ALL
SELECT 'task ' || id || ' needs semaphore ' || semaphore || ', which does not exist' FROM permitq_task
 WHERE state = 'running' AND semaphore NOT IN (SELECT name FROM permitq_semaphore)
UNION ALL
SELECT 'a cooling permit belongs to semaphore ' || semaphore || ', which does not exist' FROM (
    SELECT semaphore FROM permitq_cooling WHERE semaphore NOT IN (SELECT name FROM permitq_semaphore) LIMIT 100) k
UNION ALL
SELECT 'task ' || t.id || ' runs attempt ' || t.claim_no || ', which the log says has ended' FROM permitq_task t
  JOIN permitq_attempt a ON a.task = t.id AND a.claim_no = t.claim_no
 WHERE t.state = 'running'
