-- All triggers, or those of one job.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       t.start_at, t.end_at, t.next_fire_at,
       t.paused, t.waits_for
  FROM permitq_trigger t WHERE ($1 IS NULL OR t.job = $2) ORDER BY t.job, t.id
