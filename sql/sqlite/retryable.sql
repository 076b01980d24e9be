-- Failed and cancelled tasks for a person to retry, oldest first; each filter is open where it is NULL. Payloads stay where they are.
SELECT id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts, on_abandon, timeout,
       consumer, until, created_at, started_at, finished_at, result, error, source, aged, expires_at
  FROM permitq_task
 WHERE state IN ('failed', 'cancelled') AND ($1 IS NULL OR state = $2) AND ($3 IS NULL OR kind = $4)
   AND ($5 IS NULL OR instr(error, $6) > 0)
   AND ($7 IS NULL OR finished_at >= $8) AND ($9 IS NULL OR finished_at < $10)
 ORDER BY id LIMIT $11
