-- Records of planned instants, oldest first, behind $2, at most $3: are they 'old' (from before $1, in microseconds), and
-- 'kept' for the run they fired? They were written in about this order.
SELECT i.id, i.at < $1 AS old,
       i.fate = 'fired' AND EXISTS (SELECT 1 FROM permitq_task t WHERE t.id = i.task) AS kept
  FROM permitq_instant i WHERE i.id > $2 ORDER BY i.id LIMIT $3
