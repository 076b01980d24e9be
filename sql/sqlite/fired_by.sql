-- The planned instant that a task is the run of. There is one at most.
SELECT job, trigger_id, planned_at, at FROM permitq_instant WHERE task = $1 AND fate = 'fired' LIMIT 1
