-- A further instant of a trigger that came while the same run was not over.
UPDATE permitq_instant SET last_at = $1, instants = instants + 1
 WHERE task = $2 AND trigger_id = $3 AND fate = 'overlap'
