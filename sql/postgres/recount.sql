-- A blocked task, locked by the caller, waits for as many parents as it has open edges; for none: it may run.
UPDATE permitq_task t
   SET state = CASE WHEN e.parents > 0 THEN 'blocked' WHEN t.run_at > statement_timestamp() THEN 'scheduled'
                    ELSE 'pending' END,
       waiting_for = e.parents
  FROM (SELECT count(*) AS parents FROM permitq_dependency WHERE task = $1 AND open = 1) e
 WHERE t.id = $2 AND t.state = 'blocked'
