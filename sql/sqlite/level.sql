-- The next lower priority (NULL: the highest) that a pending task of this semaphore and kind has. One step in the claim's index.
SELECT priority FROM permitq_task
 WHERE state = 'pending' AND semaphore = $1 AND kind = $2 AND priority < coalesce($3, 2147483648)
 ORDER BY priority DESC LIMIT 1
