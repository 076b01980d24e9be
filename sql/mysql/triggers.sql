-- All triggers, or those of one job.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.start_at) AS start_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.end_at) AS end_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.next_fire_at) AS next_fire_at,
       t.paused, t.waits_for
  FROM permitq_trigger t WHERE (? IS NULL OR t.job = ?) ORDER BY t.job, t.id
