-- Moves a trigger on: only from the instant that was decided about, so only one of several schedulers does.
UPDATE permitq_trigger SET next_fire_at = $1
 WHERE id = $2 AND paused = 0 AND next_fire_at = $3
