-- Fixed delays whose run has ended, and when; a run whose row is gone has no instant.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.start_at) AS start_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.end_at) AS end_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.next_fire_at) AS next_fire_at,
       t.paused, t.waits_for,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', k.finished_at) AS finished_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now
  FROM permitq_trigger t LEFT JOIN permitq_task k ON k.id = t.waits_for
 WHERE t.paused = 0 AND t.waits_for IS NOT NULL AND (k.id IS NULL OR k.finished_at IS NOT NULL)
 ORDER BY t.id LIMIT ?
