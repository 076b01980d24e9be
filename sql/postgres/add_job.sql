-- A job, given as JSON; one of this name that is there already is left alone.
INSERT INTO permitq_job (name, kind, semaphore, payload, priority, timeout, max_attempts, on_abandon,
                         key_template, misfire, misfire_after, misfire_max, overlap)
SELECT name, kind, semaphore, payload, priority, timeout, max_attempts, on_abandon, key_template, misfire,
       misfire_after, misfire_max, overlap
  FROM json_to_record($1::json) AS (name text, kind text, semaphore text, payload text, priority integer,
                                      timeout double precision, max_attempts integer, on_abandon text,
                                      key_template text, misfire text, misfire_after double precision,
                                      misfire_max integer, overlap text)
    ON CONFLICT (name) DO NOTHING
