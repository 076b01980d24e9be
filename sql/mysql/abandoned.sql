-- Running tasks nobody will finish: their consumer is gone or unknown, or their call must have been over a whole lease
-- (microseconds) ago. A plain predicate: no join that can miss. First found without a lock, then locked through PRIMARY;
-- what was true of this claim stays true of it.
SELECT t.id, t.claim_no, t.semaphore, t.consumer, t.attempts, t.max_attempts, t.on_abandon
  FROM (SELECT r.id, r.claim_no FROM permitq_task r FORCE INDEX (permitq_task_ready)
         WHERE r.state = 'running' AND r.id > ?
           AND (NOT EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = r.consumer AND c.state <> 'gone')
                OR TIMESTAMPADD(MICROSECOND, ?, r.until) < UTC_TIMESTAMP(6))
         ORDER BY r.id LIMIT ?) a
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = a.id
 WHERE t.claim_no = a.claim_no AND t.state = 'running'
 ORDER BY t.id
   FOR UPDATE SKIP LOCKED
