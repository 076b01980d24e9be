-- All jobs, or one, each with its newest run that is not over.
SELECT j.name, j.kind, j.semaphore, j.payload, j.priority, j.timeout, j.max_attempts, j.on_abandon, j.key_template,
       j.misfire, j.misfire_after, j.misfire_max, j.overlap,
       j.created_at AS created_at,
       (SELECT max(k.id) FROM permitq_task k WHERE k.job = j.name AND k.finished_at IS NULL) AS live
  FROM permitq_job j WHERE ($1 IS NULL OR j.name = $2) ORDER BY j.name
