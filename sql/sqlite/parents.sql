-- All that these tasks (a JSON list of ids) wait for, or did.
SELECT DISTINCT parent AS id FROM permitq_dependency WHERE task IN (SELECT value FROM json_each($1))
