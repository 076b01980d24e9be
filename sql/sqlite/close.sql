-- These edges (a JSON list) are told. Not open any more.
UPDATE permitq_dependency SET open = 0
  FROM (SELECT value ->> 'task' AS task, value ->> 'parent' AS parent FROM json_each($1)) j
 WHERE permitq_dependency.task = j.task AND permitq_dependency.parent = j.parent
