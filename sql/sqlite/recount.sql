-- A blocked task waits for as many parents as it has open edges; for none: it may run.
UPDATE permitq_task
   SET state = CASE WHEN e.parents > 0 THEN 'blocked'
                    WHEN run_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 THEN 'scheduled'
                    ELSE 'pending' END,
       waiting_for = e.parents
  FROM (SELECT count(*) AS parents FROM permitq_dependency WHERE task = $1 AND open = 1) e
 WHERE id = $2 AND state = 'blocked'
