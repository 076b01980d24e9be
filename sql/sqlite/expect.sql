-- Somebody waits for the ends of these tasks (a JSON list of ids).
UPDATE permitq_task SET dependents = 1 WHERE id IN (SELECT value FROM json_each($1)) AND dependents = 0
