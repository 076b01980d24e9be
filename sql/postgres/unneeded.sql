-- Which of these tasks (a JSON list) retention may take: finished before $2 (microseconds), and needed by nothing; locked.
-- What somebody else has it leaves for later.
SELECT t.id FROM permitq_task t
 WHERE t.id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
   AND t.finished_at < 'epoch'::timestamptz + $2 * interval '1 microsecond'
   AND t.dependents = 0 AND NOT EXISTS (SELECT 1 FROM permitq_cooling k WHERE k.task = t.id)
   FOR UPDATE SKIP LOCKED
