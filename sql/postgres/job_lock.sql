-- One job, locked: whoever fires it, by whichever trigger or hand, comes by here first. Before any task.
SELECT j.name, j.kind, j.semaphore, j.payload, j.priority, j.timeout, j.max_attempts, j.on_abandon, j.key_template,
       j.misfire, j.misfire_after, j.misfire_max, j.overlap,
       (extract(epoch FROM j.created_at) * 1000000)::bigint AS created_at
  FROM permitq_job j WHERE j.name = $1 FOR UPDATE
