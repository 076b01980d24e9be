-- The run that a fixed delay waited for has ended: its next instant, or none any more.
UPDATE permitq_trigger SET next_fire_at = 'epoch'::timestamptz + $1 * interval '1 microsecond', waits_for = NULL
 WHERE id = $2 AND paused = 0 AND waits_for = $3
