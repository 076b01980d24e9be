-- Failed tasks (a JSON list of ids) wait again for as many parents as they have open edges.
UPDATE (SELECT e.task, count(*) AS parents
          FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
          STRAIGHT_JOIN permitq_dependency e FORCE INDEX (PRIMARY) ON e.task = j.id
         WHERE e.open = 1 GROUP BY e.task) w
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = w.task
   SET t.state = 'blocked', t.waiting_for = w.parents, t.attempts = 0, t.finished_at = NULL, t.error = NULL, t.result = NULL
 WHERE t.state = 'failed'
