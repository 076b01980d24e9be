-- One task, whole.
SELECT id, kind, semaphore, biz_key, priority, state, (extract(epoch FROM run_at) * 1000000)::bigint AS run_at,
       claim_no, attempts, max_attempts, on_abandon, timeout, consumer,
       (extract(epoch FROM until) * 1000000)::bigint AS until,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM started_at) * 1000000)::bigint AS started_at,
       (extract(epoch FROM finished_at) * 1000000)::bigint AS finished_at,
       result, error, source, aged,
       (extract(epoch FROM expires_at) * 1000000)::bigint AS expires_at, payload
  FROM permitq_task WHERE id = $1
