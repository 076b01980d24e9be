-- What people did to these tasks (a JSON list), which goes with them.
DELETE FROM permitq_action WHERE task = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
