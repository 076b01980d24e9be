-- What became of a job's planned instants, latest first.
SELECT trigger_id, instants, fate, task,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', planned_at) AS planned_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', last_at) AS last_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) AS at
  FROM permitq_instant WHERE job = ? ORDER BY id DESC LIMIT ?
