-- Raises by one the oldest tasks of one priority that have waited for a further $4 (microseconds) since they were due. Only the
-- first hundred are looked at: those behind them would not be claimed sooner.
UPDATE permitq_task SET priority = priority + 1, aged = aged + 1
 WHERE id = ANY (ARRAY(SELECT o.id FROM (
         SELECT t.id, t.run_at, t.aged FROM permitq_task t
          WHERE t.state = 'pending' AND t.semaphore = $1 AND t.kind = $2 AND t.priority = $3
          ORDER BY t.run_at, t.id LIMIT 100 FOR UPDATE SKIP LOCKED) o
         WHERE o.run_at + (o.aged + 1) * $4::bigint * interval '1 microsecond' <= statement_timestamp()))
