-- Records of planned instants, oldest first, behind an id: are they 'old' (from before an instant in microseconds), and
-- 'kept' for the run they fired? They were written in about this order.
SELECT i.id, i.at < TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') AS old,
       i.fate = 'fired' AND EXISTS (SELECT 1 FROM permitq_task t WHERE t.id = i.task) AS kept
  FROM permitq_instant i FORCE INDEX (PRIMARY) WHERE i.id > ? ORDER BY i.id LIMIT ?
