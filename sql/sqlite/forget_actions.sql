-- These records of what people did (a JSON list) that retention has read.
DELETE FROM permitq_action WHERE id IN (SELECT value FROM json_each($1))
