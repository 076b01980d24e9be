-- What people did, oldest first, behind an id: is it 'old' (from before an instant in microseconds), and 'kept' for its
-- task? It was written in about this order.
SELECT a.id, a.at < TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') AS old,
       EXISTS (SELECT 1 FROM permitq_task t WHERE t.id = a.task) AS kept
  FROM permitq_action a FORCE INDEX (PRIMARY) WHERE a.id > ? ORDER BY a.id LIMIT ?
