-- A person wants a finished task to run again, with a whole budget, the priority that was asked for, and no deadline that has passed: at once, or ($1 and $2 not NULL) at that instant.
UPDATE permitq_task
   SET state = CASE WHEN $1 > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 THEN 'scheduled' ELSE 'pending' END,
       run_at = max(coalesce($2, 0), CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
       attempts = 0, priority = priority - aged, aged = 0,
       expires_at = CASE WHEN expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 THEN expires_at END, finished_at = NULL, result = NULL
 WHERE id = $3 AND state IN ('failed', 'cancelled')
