-- These edges (a JSON list) are told. Not open any more.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (task BIGINT PATH '$.task', parent BIGINT PATH '$.parent')) j
  STRAIGHT_JOIN permitq_dependency e FORCE INDEX (PRIMARY) ON e.task = j.task AND e.parent = j.parent
   SET e.open = 0
