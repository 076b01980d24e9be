-- A fixed delay waits for the end of this run.
UPDATE permitq_trigger SET waits_for = $1 WHERE id = $2
