-- The attempt log: one row per ended attempt that still runs under its claim_no (and for this consumer, where
-- one is named): as many rows as are still ours. Their tasks
-- are locked through PRIMARY in the order of the list, whose ids ascend: the one lock order; a lock that starts at another
-- index can deadlock with one that ends there. 'why' (cools) keeps permit_released_at open.
INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, called_at, ended_at,
                             permit_released_at, outcome, status, error, ended_by)
SELECT t.id, t.claim_no, t.kind, t.semaphore, t.consumer, t.started_at,
       TIMESTAMPADD(MICROSECOND, j.called_after, t.started_at),
       UTC_TIMESTAMP(6), CASE WHEN j.why IS NULL THEN UTC_TIMESTAMP(6) END,
       j.outcome, j.status, j.error, ?
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
           id BIGINT PATH '$.id', claim_no BIGINT PATH '$.claim_no',
           called_after BIGINT PATH '$.called_after',
           why LONGTEXT CHARACTER SET utf8mb4 PATH '$.why',
           outcome LONGTEXT CHARACTER SET utf8mb4 PATH '$.outcome',
           status BIGINT PATH '$.status',
           error LONGTEXT CHARACTER SET utf8mb4 PATH '$.error')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
 WHERE t.claim_no = j.claim_no AND t.state = 'running' AND t.consumer = coalesce(?, t.consumer)
   FOR UPDATE
