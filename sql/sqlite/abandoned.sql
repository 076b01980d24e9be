-- Running tasks nobody will finish: their consumer is gone or unknown, or their call must have been over a whole lease
-- ($2, microseconds) ago. A plain predicate: no join that can miss. Ids above $1, at most $3.
-- INDEXED BY keeps the planner off the primary key, which would lead it through every finished task.
SELECT t.id, t.claim_no, t.semaphore, t.consumer, t.attempts, t.max_attempts, t.on_abandon
  FROM permitq_task t INDEXED BY permitq_task_running
 WHERE t.state = 'running' AND t.id > $1
   AND (NOT EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = t.consumer AND c.state <> 'gone')
        OR t.until + $2 < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
 ORDER BY t.id LIMIT $3
