-- A job, given as JSON; one of this name that is there already is left alone.
INSERT INTO permitq_job (name, kind, semaphore, payload, priority, timeout, max_attempts, on_abandon,
                         key_template, misfire, misfire_after, misfire_max, overlap)
SELECT $1 ->> 'name', $1 ->> 'kind', $1 ->> 'semaphore', $1 ->> 'payload', $1 ->> 'priority', $1 ->> 'timeout',
       $1 ->> 'max_attempts', $1 ->> 'on_abandon', $1 ->> 'key_template', $1 ->> 'misfire',
       $1 ->> 'misfire_after', $1 ->> 'misfire_max', $1 ->> 'overlap'
 WHERE true
    ON CONFLICT (name) DO NOTHING
