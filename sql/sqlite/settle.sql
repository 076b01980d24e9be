-- Moves ended tasks on, each fenced by its claim_no. 'delay' (microseconds) counts from now, and where 'after_cooling'
-- is 1 not before the given-up call must be over.
-- Where $2 is 0, tasks for which others wait stay as they are: their ends have to be told, too.
UPDATE permitq_task
   SET state = j.state, attempts = j.attempts, consumer = NULL, until = NULL,
       run_at = CASE WHEN j.delay IS NULL THEN run_at
                     ELSE max(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + j.delay,
                              CASE WHEN j.after_cooling = 1 THEN until ELSE 0 END) END,
       finished_at = CASE WHEN j.state IN ('succeeded', 'failed', 'cancelled')
                          THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 END,
       result = j.result, error = j.error
  FROM (SELECT value ->> 'id' AS id, value ->> 'claim_no' AS claim_no, value ->> 'state' AS state,
               value ->> 'attempts' AS attempts, value ->> 'delay' AS delay,
               value ->> 'after_cooling' AS after_cooling, value ->> 'result' AS result, value ->> 'error' AS error
          FROM json_each($1)) j
 WHERE permitq_task.id = j.id AND permitq_task.claim_no = j.claim_no AND permitq_task.state = 'running'
   AND permitq_task.dependents <= $2
