-- Tasks, newest first, below the last id; each filter is open where it is NULL. Payloads stay where they are.
SELECT id, kind, semaphore, biz_key, priority, state, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', run_at) AS run_at,
       claim_no, attempts, max_attempts, on_abandon, timeout, consumer,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', until) AS until,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at) AS created_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at) AS started_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', finished_at) AS finished_at,
       result, error, source, aged, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) AS expires_at
  FROM permitq_task
 WHERE (? IS NULL OR state = ?) AND (? IS NULL OR kind = ?) AND (? IS NULL OR semaphore = ?)
   AND (? IS NULL OR biz_key = ?) AND id < ?
 ORDER BY id DESC LIMIT ?
