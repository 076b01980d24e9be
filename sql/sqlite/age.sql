-- Raises by one the oldest tasks of one priority that have waited for a further $4 (microseconds) since they were due. Only the
-- first hundred are looked at: those behind them would not be claimed sooner.
UPDATE permitq_task SET priority = priority + 1, aged = aged + 1
 WHERE id IN (SELECT o.id FROM (
         SELECT t.id, t.run_at, t.aged FROM permitq_task t
          WHERE t.state = 'pending' AND t.semaphore = $1 AND t.kind = $2 AND t.priority = $3
          ORDER BY t.run_at, t.id LIMIT 100) o
         WHERE o.run_at + (o.aged + 1) * $4 <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
