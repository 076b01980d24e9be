-- The planned instant that a task is the run of. There is one at most.
SELECT job, trigger_id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', planned_at) AS planned_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) AS at
  FROM permitq_instant FORCE INDEX (permitq_instant_task) WHERE task = ? AND fate = 'fired' LIMIT 1
