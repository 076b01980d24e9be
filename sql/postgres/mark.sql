-- Makes picked tasks (a JSON list with the policy of their kind) this consumer's, if it is alive. 'hold' is the
-- longest time in microseconds that the call can take until it must be over downstream.
-- "state || ''" keeps the planner off the index of all that is pending.
UPDATE permitq_task t
   SET state = 'running', claim_no = t.claim_no + 1, attempts = t.attempts + 1, consumer = $2,
       started_at = statement_timestamp(),
       until = statement_timestamp() + j.hold * interval '1 microsecond',
       max_attempts = coalesce(t.max_attempts, j.max_attempts),
       on_abandon = coalesce(t.on_abandon, j.on_abandon)
  FROM json_to_recordset($1::json) AS j (id bigint, hold bigint, max_attempts integer, on_abandon text)
 WHERE t.id = j.id AND t.state || '' = 'pending'
   AND EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = $3 AND c.state = 'alive')
