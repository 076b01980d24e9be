-- Adds edges, a JSON list.
INSERT INTO permitq_dependency (task, parent, any_end)
SELECT task, parent, any_end FROM json_to_recordset($1::json) AS j (task bigint, parent bigint, any_end integer)
