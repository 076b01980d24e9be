-- Failed tasks (a JSON list of ids) wait again for as many parents as they have open edges.
UPDATE permitq_task t
   SET state = 'blocked', waiting_for = e.parents, attempts = 0, finished_at = NULL, error = NULL, result = NULL
  FROM (SELECT task, count(*) AS parents FROM permitq_dependency
         WHERE task = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json))) AND open = 1
         GROUP BY task) e
 WHERE t.id = e.task AND t.state = 'failed'
