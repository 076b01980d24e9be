-- One job, locked: whoever fires it, by whichever trigger or hand, comes by here first. Before any task.
SELECT j.name, j.kind, j.semaphore, j.payload, j.priority, j.timeout, j.max_attempts, j.on_abandon, j.key_template,
       j.misfire, j.misfire_after, j.misfire_max, j.overlap,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', j.created_at) AS created_at
  FROM permitq_job j WHERE j.name = ? FOR UPDATE
