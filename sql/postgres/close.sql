-- These edges (a JSON list) are told. Not open any more.
UPDATE permitq_dependency e SET open = 0
  FROM json_to_recordset($1::json) AS j (task bigint, parent bigint)
 WHERE e.task = j.task AND e.parent = j.parent
