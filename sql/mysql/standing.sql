-- One task, locked, with what decides its next move.
SELECT id, claim_no, semaphore, state, consumer, attempts, max_attempts, on_abandon, dependents
  FROM permitq_task FORCE INDEX (PRIMARY) WHERE id = ? FOR UPDATE
