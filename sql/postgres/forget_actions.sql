-- These records of what people did (a JSON list) that retention has read.
DELETE FROM permitq_action WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
