-- A trigger is paused, or goes on with this instant. Under the job's lock.
UPDATE permitq_trigger SET paused = $1, next_fire_at = $2 WHERE id = $3
