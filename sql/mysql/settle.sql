-- Moves ended tasks on, each fenced by its claim_no. 'delay' (microseconds) counts from now, and where 'after_cooling'
-- is 1 not before the given-up call must be over. run_at is set before until: assignments see those before them.
-- Where ? is 0, tasks for which others wait stay as they are: their ends have to be told, too.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
           id BIGINT PATH '$.id', claim_no BIGINT PATH '$.claim_no',
           state LONGTEXT CHARACTER SET utf8mb4 PATH '$.state',
           attempts BIGINT PATH '$.attempts',
           delay BIGINT PATH '$.delay',
           after_cooling BIGINT PATH '$.after_cooling',
           result LONGTEXT CHARACTER SET utf8mb4 PATH '$.result',
           error LONGTEXT CHARACTER SET utf8mb4 PATH '$.error')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   SET t.run_at = CASE WHEN j.delay IS NULL THEN t.run_at
                       WHEN j.after_cooling = 1
                       THEN GREATEST(TIMESTAMPADD(MICROSECOND, j.delay, UTC_TIMESTAMP(6)), t.until)
                       ELSE TIMESTAMPADD(MICROSECOND, j.delay, UTC_TIMESTAMP(6)) END,
       t.state = j.state, t.attempts = j.attempts, t.consumer = NULL, t.until = NULL,
       t.finished_at = CASE WHEN j.state IN ('succeeded', 'failed', 'cancelled') THEN UTC_TIMESTAMP(6) END,
       t.result = j.result, t.error = j.error
 WHERE t.claim_no = j.claim_no AND t.state = 'running' AND t.dependents <= ?
