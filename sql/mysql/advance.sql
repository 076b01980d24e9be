-- Moves a trigger on: only from the instant that was decided about, so only one of several schedulers does.
UPDATE permitq_trigger SET next_fire_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')
 WHERE id = ? AND paused = 0 AND next_fire_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')
