-- The tasks that have these business keys (a JSON list).
SELECT t.id, t.biz_key
  FROM JSON_TABLE(?, '$[*]' COLUMNS (biz_key LONGTEXT CHARACTER SET utf8mb4 PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (biz_key) ON t.biz_key = j.biz_key
