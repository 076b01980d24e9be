-- Moves ended tasks on, each fenced by its claim_no. 'delay' (microseconds) counts from now, and where 'after_cooling'
-- is 1 not before the given-up call must be over.
-- Where $2 is 0, tasks for which others wait stay as they are: their ends have to be told, too.
UPDATE permitq_task t
   SET state = j.state, attempts = j.attempts, consumer = NULL, until = NULL,
       run_at = CASE WHEN j.delay IS NULL THEN t.run_at
                     ELSE greatest(statement_timestamp() + j.delay * interval '1 microsecond',
                                   CASE WHEN j.after_cooling = 1 THEN t.until END) END,
       finished_at = CASE WHEN j.state IN ('succeeded', 'failed', 'cancelled') THEN statement_timestamp() END,
       result = j.result, error = j.error
  FROM json_to_recordset($1::json)
       AS j (id bigint, claim_no bigint, state text, attempts integer, delay bigint, after_cooling integer,
             result text, error text)
 WHERE t.id = j.id AND t.claim_no = j.claim_no AND t.state = 'running' AND t.dependents <= $2
