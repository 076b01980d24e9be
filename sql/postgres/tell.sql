-- Tells blocked tasks (a JSON list) that 'ended' more of their parents have; they fail where there is an 'error', and may run
-- when no parent is left.
UPDATE permitq_task t
   SET state = CASE WHEN j.error IS NOT NULL THEN 'failed' WHEN t.waiting_for > j.ended THEN 'blocked'
                    WHEN t.run_at > statement_timestamp() THEN 'scheduled' ELSE 'pending' END,
       waiting_for = CASE WHEN j.error IS NULL THEN greatest(t.waiting_for - j.ended, 0) ELSE 0 END,
       finished_at = CASE WHEN j.error IS NOT NULL THEN statement_timestamp() END,
       error = coalesce(j.error, t.error)
  FROM json_to_recordset($1::json) AS j (id bigint, ended integer, error text)
 WHERE t.id = j.id AND t.state = 'blocked'
