-- What people did, oldest first, behind $2, at most $3: is it 'old' (from before $1, in microseconds), and 'kept' for its
-- task? It was written in about this order.
SELECT a.id, a.at < $1 AS old, EXISTS (SELECT 1 FROM permitq_task t WHERE t.id = a.task) AS kept
  FROM permitq_action a WHERE a.id > $2 ORDER BY a.id LIMIT $3
