-- The planned instant that a task is the run of. There is one at most.
SELECT job, trigger_id, (extract(epoch FROM planned_at) * 1000000)::bigint AS planned_at,
       (extract(epoch FROM at) * 1000000)::bigint AS at
  FROM permitq_instant WHERE task = $1 AND fate = 'fired' LIMIT 1
