-- The tasks that have these business keys (a JSON list).
SELECT id, biz_key FROM permitq_task WHERE biz_key = ANY (ARRAY(SELECT json_array_elements_text($1::json)))
