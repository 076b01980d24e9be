-- The attempts of these tasks (a JSON list), which go with them.
DELETE FROM permitq_attempt WHERE task IN (SELECT value FROM json_each($1))
