-- The open edges to those of these tasks (a JSON list of ids) that have ended or are not there, at most $2.
SELECT e.task, e.parent, e.any_end, p.state AS parent_state, c.state, c.dependents
  FROM json_each($1) j
  CROSS JOIN permitq_dependency e ON e.parent = j.value AND e.open = 1
  LEFT JOIN permitq_task p ON p.id = e.parent
  JOIN permitq_task c ON c.id = e.task
 WHERE p.id IS NULL OR p.finished_at IS NOT NULL
 ORDER BY e.task, e.parent
 LIMIT $2
