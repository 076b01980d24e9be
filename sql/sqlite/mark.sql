-- Makes picked tasks (a JSON list with the policy of their kind) this consumer's, if it is alive. 'hold' is the
-- longest time in microseconds that the call can take until it must be over downstream.
UPDATE permitq_task
   SET state = 'running', claim_no = claim_no + 1, attempts = attempts + 1, consumer = $2,
       started_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000,
       until = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + j.hold,
       max_attempts = coalesce(permitq_task.max_attempts, j.max_attempts),
       on_abandon = coalesce(permitq_task.on_abandon, j.on_abandon)
  FROM (SELECT value ->> 'id' AS id, value ->> 'hold' AS hold, value ->> 'max_attempts' AS max_attempts,
               value ->> 'on_abandon' AS on_abandon FROM json_each($1)) j
 WHERE permitq_task.id = j.id AND state = 'pending'
   AND EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = $3 AND c.state = 'alive')
