-- The ends of these tasks (a JSON list of ids) are told to all who waited for them.
UPDATE permitq_task SET dependents = 0 WHERE id IN (SELECT value FROM json_each($1)) AND dependents = 1
   AND finished_at IS NOT NULL
