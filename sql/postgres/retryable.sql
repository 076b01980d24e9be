-- Failed and cancelled tasks for a person to retry, oldest first; each filter is open where it is NULL. Payloads stay where they are.
SELECT id, kind, semaphore, biz_key, priority, state, (extract(epoch FROM run_at) * 1000000)::bigint AS run_at,
       claim_no, attempts, max_attempts, on_abandon, timeout, consumer,
       (extract(epoch FROM until) * 1000000)::bigint AS until,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM started_at) * 1000000)::bigint AS started_at,
       (extract(epoch FROM finished_at) * 1000000)::bigint AS finished_at,
       result, error, source, aged,
       (extract(epoch FROM expires_at) * 1000000)::bigint AS expires_at
  FROM permitq_task
 WHERE state IN ('failed', 'cancelled') AND ($1 IS NULL OR state = $2) AND ($3 IS NULL OR kind = $4)
   AND ($5 IS NULL OR position($6 IN error) > 0)
   AND ($7::bigint IS NULL OR finished_at >= 'epoch'::timestamptz + $8 * interval '1 microsecond')
   AND ($9::bigint IS NULL OR finished_at < 'epoch'::timestamptz + $10 * interval '1 microsecond')
 ORDER BY id LIMIT $11
