-- Moves a trigger on: only from the instant that was decided about, so only one of several schedulers does.
UPDATE permitq_trigger SET next_fire_at = 'epoch'::timestamptz + $1 * interval '1 microsecond'
 WHERE id = $2 AND paused = 0 AND next_fire_at = 'epoch'::timestamptz + $3 * interval '1 microsecond'
