-- What people did to these tasks (a JSON list), which goes with them.
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_action t FORCE INDEX (permitq_action_task) ON t.task = j.id
