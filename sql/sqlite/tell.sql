-- Tells blocked tasks (a JSON list) that 'ended' more of their parents have; they fail where there is an 'error', and may run
-- when no parent is left.
UPDATE permitq_task
   SET state = CASE WHEN j.error IS NOT NULL THEN 'failed' WHEN waiting_for > j.ended THEN 'blocked'
                    WHEN run_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 THEN 'scheduled'
                    ELSE 'pending' END,
       waiting_for = CASE WHEN j.error IS NULL THEN max(waiting_for - j.ended, 0) ELSE 0 END,
       finished_at = CASE WHEN j.error IS NOT NULL
                          THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 END,
       error = coalesce(j.error, permitq_task.error)
  FROM (SELECT value ->> 'id' AS id, value ->> 'ended' AS ended, value ->> 'error' AS error FROM json_each($1)) j
 WHERE permitq_task.id = j.id AND permitq_task.state = 'blocked'
