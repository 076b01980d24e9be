-- Somebody waits for the ends of these tasks (a JSON list of ids, locked by the caller).
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   SET t.dependents = 1
 WHERE t.dependents = 0
