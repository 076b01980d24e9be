-- The ends of these tasks (a JSON list of ids, locked by the caller) are told to all who waited for them.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   SET t.dependents = 0
 WHERE t.dependents = 1 AND t.finished_at IS NOT NULL
