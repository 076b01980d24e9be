-- Inserts a JSON list of tasks, in its order; a business key that exists already is left alone and not returned.
-- 'at', 'delay' and the deadline are microseconds; the trigger turns a future task into a scheduled one.
INSERT INTO permitq_task (kind, semaphore, biz_key, payload, priority, run_at, timeout, max_attempts, on_abandon, source, job,
                          expires_at, state, waiting_for)
SELECT value ->> 'kind', value ->> 'semaphore', value ->> 'biz_key', value ->> 'payload', value ->> 'priority',
       coalesce(value ->> 'at', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + (value ->> 'delay')),
       value ->> 'timeout', value ->> 'max_attempts', value ->> 'on_abandon', value ->> 'source', value ->> 'job',
       coalesce(value ->> 'expires_at', CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + (value ->> 'expires_in')),
       CASE WHEN value ->> 'waiting_for' > 0 THEN 'blocked' ELSE 'pending' END, value ->> 'waiting_for'
  FROM json_each($1)
 WHERE true                                     -- tells the parser that ON belongs to the INSERT
    ON CONFLICT (biz_key) DO NOTHING
RETURNING id, biz_key
