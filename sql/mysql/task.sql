-- One task, whole.
SELECT id, kind, semaphore, biz_key, priority, state, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', run_at) AS run_at,
       claim_no, attempts, max_attempts, on_abandon, timeout, consumer,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', until) AS until,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS created_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at) AS started_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', finished_at) AS finished_at,
       result, error, source, aged, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) AS expires_at, payload
  FROM permitq_task WHERE id = ?
