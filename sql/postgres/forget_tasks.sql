-- These tasks (a JSON list), which unneeded.sql has named in the same transaction. Their keys are free again.
DELETE FROM permitq_task WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
