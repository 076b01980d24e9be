-- These tasks (a JSON list), which unneeded.sql has named in the same transaction. Their keys are free again.
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
