-- These tasks (a JSON list of ids), by ascending id.
SELECT id, state, dependents FROM permitq_task WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id
