-- Ends coolings by their ids (a JSON list). The rows that go are the permits to free.
DELETE k FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_cooling k FORCE INDEX (PRIMARY) ON k.id = j.id
