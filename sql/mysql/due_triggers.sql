-- Triggers that are due, longest first, with what decides about what is late; not those that wait for a run to end.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.start_at) AS start_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.end_at) AS end_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.next_fire_at) AS next_fire_at,
       t.paused, t.waits_for,
       j.misfire, j.misfire_after, j.misfire_max,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now
  FROM permitq_trigger t JOIN permitq_job j ON j.name = t.job
 WHERE t.paused = 0 AND t.next_fire_at <= UTC_TIMESTAMP(6)
   AND NOT (j.overlap = 'queue' AND EXISTS (SELECT 1 FROM permitq_task k WHERE k.live_job = j.name))
 ORDER BY t.next_fire_at, t.id LIMIT ?
