-- A person wants a finished task to run again, with a whole budget, the priority that was asked for, and no deadline that has passed: at once, or (the first two not NULL) at that instant.
UPDATE permitq_task
   SET state = CASE WHEN TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') > UTC_TIMESTAMP(6)
                    THEN 'scheduled' ELSE 'pending' END,
       run_at = GREATEST(coalesce(TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), UTC_TIMESTAMP(6)),
                         UTC_TIMESTAMP(6)),
       attempts = 0, priority = priority - aged, aged = 0,
       expires_at = CASE WHEN expires_at > UTC_TIMESTAMP(6) THEN expires_at END, finished_at = NULL, result = NULL
 WHERE id = ? AND state IN ('failed', 'cancelled')
