-- These records of what people did (a JSON list) that retention has read.
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_action t FORCE INDEX (PRIMARY) ON t.id = j.id
