-- All that these tasks (a JSON list of ids) wait for, or did.
SELECT DISTINCT e.parent AS id
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_dependency e FORCE INDEX (PRIMARY) ON e.task = j.id
