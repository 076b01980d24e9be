-- One task, whole.
SELECT id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts, on_abandon, timeout,
       consumer, until, created_at, started_at, finished_at, result, error, source, aged, expires_at, payload
  FROM permitq_task WHERE id = $1
