-- What went in since collect.sql.
SELECT t.id, t.biz_key
  FROM JSON_TABLE(CONCAT('[', @permitq_ids, ']'), '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
