-- A blocked task, locked by the caller, waits for as many parents as it has open edges; for none: it may run.
UPDATE (SELECT count(*) AS parents FROM permitq_dependency WHERE task = ? AND open = 1) e
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = ?
   SET t.state = CASE WHEN e.parents > 0 THEN 'blocked' WHEN t.run_at > UTC_TIMESTAMP(6) THEN 'scheduled'
                      ELSE 'pending' END,
       t.waiting_for = e.parents
 WHERE t.state = 'blocked'
