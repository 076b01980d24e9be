-- What became of a job's planned instants, latest first.
SELECT trigger_id, instants, fate, task,
       planned_at, last_at, at
  FROM permitq_instant WHERE job = $1 ORDER BY id DESC LIMIT $2
