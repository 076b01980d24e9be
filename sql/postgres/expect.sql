-- Somebody waits for the ends of these tasks (a JSON list of ids, locked by the caller).
UPDATE permitq_task SET dependents = 1
 WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json))) AND dependents = 0
