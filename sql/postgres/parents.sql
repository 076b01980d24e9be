-- All that these tasks (a JSON list of ids) wait for, or did.
SELECT DISTINCT parent AS id FROM permitq_dependency
 WHERE task = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
