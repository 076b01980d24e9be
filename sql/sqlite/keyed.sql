-- The tasks that have these business keys (a JSON list).
SELECT id, biz_key FROM permitq_task WHERE biz_key IN (SELECT value FROM json_each($1))
