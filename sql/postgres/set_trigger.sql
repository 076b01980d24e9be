-- A trigger is paused, or goes on with this instant. Under the job's lock.
UPDATE permitq_trigger SET paused = $1, next_fire_at = 'epoch'::timestamptz + $2 * interval '1 microsecond' WHERE id = $3
