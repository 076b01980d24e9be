-- Makes picked tasks (a JSON list with the policy of their kind) this consumer's, if it is alive. 'hold' is the
-- longest time in microseconds that the call can take until it must be over downstream. The consumer's row is share-locked
-- (InnoDB does that in an UPDATE of a join): those who hold such a row wait for nothing, so nobody waits in a circle.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
           id BIGINT PATH '$.id',
           hold BIGINT PATH '$.hold',
           max_attempts BIGINT PATH '$.max_attempts',
           on_abandon LONGTEXT CHARACTER SET utf8mb4 PATH '$.on_abandon')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   SET t.state = 'running', t.claim_no = t.claim_no + 1, t.attempts = t.attempts + 1, t.consumer = ?,
       t.started_at = UTC_TIMESTAMP(6),
       t.until = TIMESTAMPADD(MICROSECOND, j.hold, UTC_TIMESTAMP(6)),
       t.max_attempts = coalesce(t.max_attempts, j.max_attempts),
       t.on_abandon = coalesce(t.on_abandon, j.on_abandon)
 WHERE t.state = 'pending'
   AND EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = ? AND c.state = 'alive')
