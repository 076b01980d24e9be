-- How many pending tasks of one (semaphore, kind) come before a task of this priority, run_at (microseconds) and id, each
-- of the three ranges of the index counted up to a limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM permitq_task
          WHERE state = 'pending' AND semaphore = $1 AND kind = $2 AND priority > $3 LIMIT $4))
     + (SELECT count(*) FROM (SELECT 1 FROM permitq_task
          WHERE state = 'pending' AND semaphore = $5 AND kind = $6 AND priority = $7 AND run_at < $8 LIMIT $9))
     + (SELECT count(*) FROM (SELECT 1 FROM permitq_task INDEXED BY permitq_task_ready
          WHERE state = 'pending' AND semaphore = $10 AND kind = $11 AND priority = $12 AND run_at = $13 AND id < $14
          LIMIT $15))
