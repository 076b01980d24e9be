-- Tells blocked tasks (a JSON list) that 'ended' more of their parents have; they fail where there is an 'error', and may run
-- when no parent is left. The state is set before waiting_for: assignments see those before them.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
           id BIGINT PATH '$.id', ended BIGINT PATH '$.ended',
           error LONGTEXT CHARACTER SET utf8mb4 PATH '$.error')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   SET t.state = CASE WHEN j.error IS NOT NULL THEN 'failed' WHEN t.waiting_for > j.ended THEN 'blocked'
                      WHEN t.run_at > UTC_TIMESTAMP(6) THEN 'scheduled' ELSE 'pending' END,
       t.waiting_for = CASE WHEN j.error IS NULL THEN GREATEST(CAST(t.waiting_for AS SIGNED) - j.ended, 0) ELSE 0 END,
       t.finished_at = CASE WHEN j.error IS NOT NULL THEN UTC_TIMESTAMP(6) END,
       t.error = coalesce(j.error, t.error)
 WHERE t.state = 'blocked'
