-- All jobs, or one, each with its newest run that is not over.
SELECT j.name, j.kind, j.semaphore, j.payload, j.priority, j.timeout, j.max_attempts, j.on_abandon, j.key_template,
       j.misfire, j.misfire_after, j.misfire_max, j.overlap,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', j.created_at) AS created_at,
       (SELECT max(k.id) FROM permitq_task k WHERE k.live_job = j.name) AS live
  FROM permitq_job j WHERE (? IS NULL OR j.name = ?) ORDER BY j.name
