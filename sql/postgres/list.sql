-- Tasks, newest first, below id $9; each filter is open where it is NULL. Payloads stay where they are.
SELECT id, kind, semaphore, biz_key, priority, state, (extract(epoch FROM run_at) * 1000000)::bigint AS run_at,
       claim_no, attempts, max_attempts, on_abandon, timeout, consumer,
       (extract(epoch FROM until) * 1000000)::bigint AS until,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM started_at) * 1000000)::bigint AS started_at,
       (extract(epoch FROM finished_at) * 1000000)::bigint AS finished_at,
       result, error, source, aged,
       (extract(epoch FROM expires_at) * 1000000)::bigint AS expires_at
  FROM permitq_task
 WHERE ($1 IS NULL OR state = $2) AND ($3 IS NULL OR kind = $4) AND ($5 IS NULL OR semaphore = $6)
   AND ($7 IS NULL OR biz_key = $8) AND id < $9
 ORDER BY id DESC LIMIT $10
