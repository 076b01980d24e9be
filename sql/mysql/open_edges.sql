-- Opens the edges of these tasks (a JSON list of ids) again, to those of their parents (locked by the caller) that have not
-- ended.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_dependency e FORCE INDEX (PRIMARY) ON e.task = j.id
  STRAIGHT_JOIN permitq_task p FORCE INDEX (PRIMARY) ON p.id = e.parent
   SET e.open = 1
 WHERE p.finished_at IS NULL
