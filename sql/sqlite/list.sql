-- Tasks, newest first, below id $9; each filter is open where it is NULL. Payloads stay where they are.
SELECT id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts, on_abandon, timeout,
       consumer, until, created_at, started_at, finished_at, result, error, source
  FROM permitq_task
 WHERE ($1 IS NULL OR state = $2) AND ($3 IS NULL OR kind = $4) AND ($5 IS NULL OR semaphore = $6)
   AND ($7 IS NULL OR biz_key = $8) AND id < $9
 ORDER BY id DESC LIMIT $10
