-- These records of planned instants (a JSON list) that retention has read.
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_instant t FORCE INDEX (PRIMARY) ON t.id = j.id
