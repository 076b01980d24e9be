-- Not worth starting any more: these tasks (a JSON list of ids) are called off.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
   SET t.state = 'cancelled', t.finished_at = UTC_TIMESTAMP(6), t.waiting_for = 0, t.error = 'expired'
 WHERE t.state IN ('blocked', 'scheduled', 'pending') AND t.expires_at <= UTC_TIMESTAMP(6)
