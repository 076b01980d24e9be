-- The run that a fixed delay waited for has ended: its next instant, or none any more.
UPDATE permitq_trigger SET next_fire_at = $1, waits_for = NULL
 WHERE id = $2 AND paused = 0 AND waits_for = $3
