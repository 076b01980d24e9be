-- The attempt log: one row per ended attempt that still runs under its claim_no (and for this consumer, where
-- one is named): as many rows as are still ours. Their tasks
-- are locked in ascending id, the one lock order. 'why' (cools) keeps permit_released_at open.
INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, called_at, ended_at,
                             permit_released_at, outcome, status, error, ended_by)
SELECT t.id, t.claim_no, t.kind, t.semaphore, t.consumer, t.started_at,
       t.started_at + j.called_after * interval '1 microsecond',
       statement_timestamp(), CASE WHEN j.why IS NULL THEN statement_timestamp() END,
       j.outcome, j.status, j.error, $1
  FROM json_to_recordset($2::json)
       AS j (id bigint, claim_no bigint, called_after bigint, why text, outcome text, status integer, error text)
  JOIN permitq_task t ON t.id = j.id AND t.claim_no = j.claim_no
 WHERE t.state = 'running' AND t.consumer = coalesce($3, t.consumer)
 ORDER BY t.id
   FOR UPDATE OF t
