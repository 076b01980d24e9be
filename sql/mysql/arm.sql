-- The run that a fixed delay waited for has ended: its next instant, or none any more.
UPDATE permitq_trigger SET next_fire_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), waits_for = NULL
 WHERE id = ? AND paused = 0 AND waits_for = ?
