-- One task, locked, with what decides its next move; and the end of its last cooling, where it has one.
SELECT t.id, t.claim_no, t.semaphore, t.state, t.consumer, t.attempts, t.max_attempts, t.on_abandon,
       (SELECT max(until) FROM permitq_cooling k WHERE k.task = t.id) AS cools_until
  FROM permitq_task t WHERE t.id = $1
