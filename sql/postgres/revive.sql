-- A person wants a finished task to run again, with a whole budget, the priority that was asked for, and no deadline that has passed: at once, or ($1 and $2 not NULL) at that instant.
UPDATE permitq_task
   SET state = CASE WHEN 'epoch'::timestamptz + $1 * interval '1 microsecond' > statement_timestamp()
                    THEN 'scheduled' ELSE 'pending' END,
       run_at = greatest('epoch'::timestamptz + $2 * interval '1 microsecond', statement_timestamp()),
       attempts = 0, priority = priority - aged, aged = 0,
       expires_at = CASE WHEN expires_at > statement_timestamp() THEN expires_at END, finished_at = NULL, result = NULL
 WHERE id = $3 AND state IN ('failed', 'cancelled')
