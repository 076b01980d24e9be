-- Triggers that are due, longest first, with what decides about what is late; not those that wait for a run to end.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       (extract(epoch FROM t.start_at) * 1000000)::bigint AS start_at,
       (extract(epoch FROM t.end_at) * 1000000)::bigint AS end_at,
       (extract(epoch FROM t.next_fire_at) * 1000000)::bigint AS next_fire_at,
       t.paused, t.waits_for,
       j.misfire, j.misfire_after, j.misfire_max,
       (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now
  FROM permitq_trigger t JOIN permitq_job j ON j.name = t.job
 WHERE t.paused = 0 AND t.next_fire_at <= statement_timestamp()
   AND NOT (j.overlap = 'queue' AND EXISTS (SELECT 1 FROM permitq_task k WHERE k.job = j.name AND k.finished_at IS NULL))
 ORDER BY t.next_fire_at, t.id LIMIT $1
