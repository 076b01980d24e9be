-- What in_use should be. Run under the semaphore's lock, as a statement of its own.
SELECT (SELECT count(*) FROM permitq_task WHERE state = 'running' AND semaphore = $1)
     + (SELECT count(*) FROM permitq_cooling WHERE semaphore = $2)
