-- What the database thinks this consumer runs, with budget and policy, for handing back claims whose answer never arrived.
SELECT id, claim_no, semaphore, attempts, max_attempts, on_abandon
  FROM permitq_task WHERE state = 'running' AND consumer = $1
