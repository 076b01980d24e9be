-- The longest time in microseconds that any permit now taken may be held, and the highest cap this semaphore ever had.
SELECT GREATEST(coalesce((SELECT max(TIMESTAMPDIFF(MICROSECOND, started_at, until))
                            FROM permitq_task FORCE INDEX (permitq_task_ready) WHERE state = 'running'), 0),
                coalesce((SELECT max(TIMESTAMPDIFF(MICROSECOND, since, until)) FROM permitq_cooling), 0)),
       coalesce((SELECT max(max_permits) FROM permitq_limit WHERE semaphore = ?), 0)
