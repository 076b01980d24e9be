-- These records of planned instants (a JSON list) that retention has read.
DELETE FROM permitq_instant WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
