-- Failed tasks (a JSON list of ids) wait again for as many parents as they have open edges.
UPDATE permitq_task
   SET state = 'blocked', waiting_for = e.parents, attempts = 0, finished_at = NULL, error = NULL, result = NULL
  FROM (SELECT task, count(*) AS parents FROM permitq_dependency
         WHERE task IN (SELECT value FROM json_each($1)) AND open = 1 GROUP BY task) e
 WHERE id = e.task AND state = 'failed'
