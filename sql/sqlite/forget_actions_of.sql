-- What people did to these tasks (a JSON list), which goes with them.
DELETE FROM permitq_action WHERE task IN (SELECT value FROM json_each($1))
