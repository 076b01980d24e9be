-- What the database thinks this consumer runs.
SELECT id, claim_no FROM permitq_task WHERE state = 'running' AND consumer = $1
