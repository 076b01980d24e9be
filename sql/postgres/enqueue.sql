-- Inserts a JSON list of tasks, in its order; a business key that exists already is left alone and not returned.
-- 'at', 'delay' and the deadline are microseconds; the trigger turns a future task into a scheduled one.
INSERT INTO permitq_task (kind, semaphore, biz_key, payload, priority, run_at, timeout, max_attempts, on_abandon, source, job,
                          expires_at, state, waiting_for)
SELECT kind, semaphore, biz_key, payload, priority,
       coalesce('epoch'::timestamptz + at * interval '1 microsecond',
                clock_timestamp() + delay * interval '1 microsecond'),
       timeout, max_attempts, on_abandon, source, job,
       coalesce('epoch'::timestamptz + expires_at * interval '1 microsecond',
                clock_timestamp() + expires_in * interval '1 microsecond'),
       CASE WHEN waiting_for > 0 THEN 'blocked' ELSE 'pending' END, waiting_for
  FROM ROWS FROM (json_to_recordset($1::json)
       AS (kind text, semaphore text, biz_key text, payload text, priority integer, at bigint, delay bigint,
           timeout double precision, max_attempts integer, on_abandon text, source text, job text, expires_at bigint,
           expires_in bigint, waiting_for integer))
       WITH ORDINALITY
 ORDER BY ordinality
    ON CONFLICT (biz_key) DO NOTHING
RETURNING id, biz_key
