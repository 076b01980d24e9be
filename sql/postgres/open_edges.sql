-- Opens the edges of these tasks (a JSON list of ids) again, to those of their parents (locked by the caller) that have not
-- ended.
UPDATE permitq_dependency e SET open = 1
 WHERE e.task = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
   AND EXISTS (SELECT 1 FROM permitq_task p WHERE p.id = e.parent AND p.finished_at IS NULL)
