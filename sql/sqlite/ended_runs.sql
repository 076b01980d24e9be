-- Fixed delays whose run has ended, and when; a run whose row is gone has no instant.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       t.start_at, t.end_at, t.next_fire_at,
       t.paused, t.waits_for,
       k.finished_at AS finished_at,
       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now
  FROM permitq_trigger t LEFT JOIN permitq_task k ON k.id = t.waits_for
 WHERE t.paused = 0 AND t.waits_for IS NOT NULL AND (k.id IS NULL OR k.finished_at IS NOT NULL)
 ORDER BY t.id LIMIT $1
