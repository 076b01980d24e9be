-- The attempts of these tasks (a JSON list), which go with them.
DELETE FROM permitq_attempt WHERE task = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
