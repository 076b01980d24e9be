-- How many pending tasks of one (semaphore, kind) come before a task of this priority, run_at (microseconds) and id, each
-- of the three ranges of the index counted up to a limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM permitq_task FORCE INDEX (permitq_task_ready)
          WHERE state = 'pending' AND semaphore = ? AND kind = ? AND urgency < -? LIMIT ?) a)
     + (SELECT count(*) FROM (SELECT 1 FROM permitq_task FORCE INDEX (permitq_task_ready)
          WHERE state = 'pending' AND semaphore = ? AND kind = ? AND urgency = -?
            AND run_at < TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') LIMIT ?) b)
     + (SELECT count(*) FROM (SELECT 1 FROM permitq_task FORCE INDEX (permitq_task_ready)
          WHERE state = 'pending' AND semaphore = ? AND kind = ? AND urgency = -?
            AND run_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') AND id < ? LIMIT ?) c)
