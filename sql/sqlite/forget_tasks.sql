-- These tasks (a JSON list), which unneeded.sql has named in the same transaction. Their keys are free again.
DELETE FROM permitq_task WHERE id IN (SELECT value FROM json_each($1))
