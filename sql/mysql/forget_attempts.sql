-- The attempts of these tasks (a JSON list), which go with them.
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_attempt t FORCE INDEX (PRIMARY) ON t.task = j.id
