-- These tasks (a JSON list of ids, ascending), locked through PRIMARY in the order of the list: the one lock order.
SELECT t.id, t.state, t.dependents
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   FOR UPDATE
