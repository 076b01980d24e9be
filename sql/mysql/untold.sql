-- Ended tasks whose end is not told to all dependents yet, at most ?; the next one to look takes others. Found without a
-- lock, then locked through PRIMARY.
SELECT t.id
  FROM (SELECT u.id FROM permitq_task u FORCE INDEX (permitq_task_untold) WHERE u.untold = 1 ORDER BY u.id LIMIT ?) o
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = o.id
 WHERE t.dependents = 1 AND t.finished_at IS NOT NULL
   FOR UPDATE SKIP LOCKED
