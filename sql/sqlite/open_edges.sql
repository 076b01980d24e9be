-- Opens the edges of these tasks (a JSON list of ids) again, to those of their parents that have not ended.
UPDATE permitq_dependency SET open = 1
 WHERE task IN (SELECT value FROM json_each($1))
   AND EXISTS (SELECT 1 FROM permitq_task p WHERE p.id = parent AND p.finished_at IS NULL)
