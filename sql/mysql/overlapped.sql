-- A further instant of a trigger that came while the same run was not over.
UPDATE permitq_instant SET last_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), instants = instants + 1
 WHERE task = ? AND trigger_id = ? AND fate = 'overlap'
