-- What became of a job's planned instants, latest first.
SELECT trigger_id, instants, fate, task,
       (extract(epoch FROM planned_at) * 1000000)::bigint AS planned_at,
       (extract(epoch FROM last_at) * 1000000)::bigint AS last_at,
       (extract(epoch FROM at) * 1000000)::bigint AS at
  FROM permitq_instant WHERE job = $1 ORDER BY id DESC LIMIT $2
