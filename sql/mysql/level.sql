-- The next lower priority (NULL: the highest) that a pending task of this semaphore and kind has. One step in the claim's index.
SELECT priority FROM permitq_task FORCE INDEX (permitq_task_ready)
 WHERE state = 'pending' AND semaphore = ? AND kind = ? AND urgency > coalesce(-?, -2147483648)
 ORDER BY urgency LIMIT 1
