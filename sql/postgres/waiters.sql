-- The open edges to those of these tasks (a JSON list of ids, locked by the caller) that have ended or are not there, at most
-- $2; who waits is locked by ascending id. An ended parent's edges are only touched by who holds the parent's lock.
SELECT e.task, e.parent, e.any_end, p.state AS parent_state, c.state, c.dependents
  FROM permitq_dependency e
  LEFT JOIN permitq_task p ON p.id = e.parent
  JOIN permitq_task c ON c.id = e.task
 WHERE e.parent = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json))) AND e.open = 1
   AND (p.id IS NULL OR p.finished_at IS NOT NULL)
 ORDER BY e.task, e.parent
 LIMIT $2
   FOR UPDATE OF c
