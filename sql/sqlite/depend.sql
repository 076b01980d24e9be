-- Adds edges, a JSON list.
INSERT INTO permitq_dependency (task, parent, any_end)
SELECT value ->> 'task', value ->> 'parent', value ->> 'any_end' FROM json_each($1)
