-- All triggers, or those of one job.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       (extract(epoch FROM t.start_at) * 1000000)::bigint AS start_at,
       (extract(epoch FROM t.end_at) * 1000000)::bigint AS end_at,
       (extract(epoch FROM t.next_fire_at) * 1000000)::bigint AS next_fire_at,
       t.paused, t.waits_for
  FROM permitq_trigger t WHERE ($1::text IS NULL OR t.job = $2) ORDER BY t.job, t.id
