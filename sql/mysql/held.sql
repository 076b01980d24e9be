-- What the database thinks this consumer runs.
SELECT id, claim_no FROM permitq_task FORCE INDEX (permitq_task_running) WHERE state = 'running' AND consumer = ?
