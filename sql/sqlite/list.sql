-- Tasks, newest first, below id $9; each filter is open where it is NULL. Payloads stay where they are.
-- One branch for each way to find them: by key, by the index of all that runs, else by id. Only one of them runs: a
-- parameter is no constant to the planner here, so "$7 IS NULL OR" alone would read the whole table.
SELECT id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts, on_abandon, timeout,
       consumer, until, created_at, started_at, finished_at, result, error, source, aged, expires_at
  FROM permitq_task
 WHERE $7 IS NULL AND $1 IS NOT 'running'
   AND ($1 IS NULL OR state = $2) AND ($3 IS NULL OR kind = $4) AND ($5 IS NULL OR semaphore = $6) AND id < $9
UNION ALL
SELECT id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts, on_abandon, timeout,
       consumer, until, created_at, started_at, finished_at, result, error, source, aged, expires_at
  FROM permitq_task INDEXED BY permitq_task_running
 WHERE $7 IS NULL AND $1 = 'running' AND state = 'running'
   AND ($3 IS NULL OR kind = $4) AND ($5 IS NULL OR semaphore = $6) AND id < $9
UNION ALL
SELECT id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts, on_abandon, timeout,
       consumer, until, created_at, started_at, finished_at, result, error, source, aged, expires_at
  FROM permitq_task
 WHERE biz_key = $8
   AND ($1 IS NULL OR state = $2) AND ($3 IS NULL OR kind = $4) AND ($5 IS NULL OR semaphore = $6) AND id < $9
 ORDER BY id DESC LIMIT $10
