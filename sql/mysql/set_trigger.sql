-- A trigger is paused, or goes on with this instant. Under the job's lock.
UPDATE permitq_trigger SET paused = ?, next_fire_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') WHERE id = ?
