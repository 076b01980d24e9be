-- The ends of these tasks (a JSON list of ids, locked by the caller) are told to all who waited for them.
UPDATE permitq_task SET dependents = 0
 WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json))) AND dependents = 1
   AND finished_at IS NOT NULL
