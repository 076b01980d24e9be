-- Triggers that are due, longest first, with what decides about what is late; not those that wait for a run to end.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       t.start_at, t.end_at, t.next_fire_at,
       t.paused, t.waits_for,
       j.misfire, j.misfire_after, j.misfire_max,
       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now
  FROM permitq_trigger t JOIN permitq_job j ON j.name = t.job
 WHERE t.paused = 0 AND t.next_fire_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
   AND NOT (j.overlap = 'queue' AND EXISTS (SELECT 1 FROM permitq_task k WHERE k.job = j.name AND k.finished_at IS NULL))
 ORDER BY t.next_fire_at, t.id LIMIT $1
