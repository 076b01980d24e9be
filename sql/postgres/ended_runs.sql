-- Fixed delays whose run has ended, and when; a run whose row is gone has no instant.
SELECT t.id, t.job, t.kind, t.expression, t.dialect, t.zone, t.every,
       (extract(epoch FROM t.start_at) * 1000000)::bigint AS start_at,
       (extract(epoch FROM t.end_at) * 1000000)::bigint AS end_at,
       (extract(epoch FROM t.next_fire_at) * 1000000)::bigint AS next_fire_at,
       t.paused, t.waits_for,
       (extract(epoch FROM k.finished_at) * 1000000)::bigint AS finished_at,
       (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS now
  FROM permitq_trigger t LEFT JOIN permitq_task k ON k.id = t.waits_for
 WHERE t.paused = 0 AND t.waits_for IS NOT NULL AND (k.id IS NULL OR k.finished_at IS NOT NULL)
 ORDER BY t.id LIMIT $1
