-- Raises by one the oldest tasks of one priority that have waited for a further ? (microseconds) since they were due. Only the
-- first hundred are looked at: those behind them would not be claimed sooner.
UPDATE (SELECT id, run_at, aged FROM permitq_task FORCE INDEX (permitq_task_ready)
         WHERE state = 'pending' AND semaphore = ? AND kind = ? AND urgency = -?
         ORDER BY run_at, id LIMIT 100 FOR UPDATE SKIP LOCKED) o
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = o.id
   SET t.priority = t.priority + 1, t.aged = t.aged + 1
 WHERE t.state = 'pending' AND TIMESTAMPADD(MICROSECOND, (o.aged + 1) * ?, o.run_at) <= UTC_TIMESTAMP(6)
