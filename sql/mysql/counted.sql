-- What in_use should be. Run under the semaphore's lock, as a statement of its own.
SELECT (SELECT count(*) FROM permitq_task FORCE INDEX (permitq_task_ready) WHERE state = 'running' AND semaphore = ?)
     + (SELECT count(*) FROM permitq_cooling WHERE semaphore = ?)
