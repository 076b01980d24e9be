-- The open edges to those of these tasks (a JSON list of ids, locked by the caller) that have ended or are not there, at most
-- ?; who waits is then locked through PRIMARY by ascending id. An ended parent's edges are only touched by who holds the
-- parent's lock.
SELECT o.task, o.parent, o.any_end, o.parent_state, c.state, c.dependents
  FROM (SELECT e.task, e.parent, e.any_end, p.state AS parent_state
          FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
          STRAIGHT_JOIN permitq_dependency e FORCE INDEX (permitq_dependency_parent) ON e.parent = j.id AND e.open = 1
          LEFT JOIN permitq_task p ON p.id = e.parent
         WHERE p.id IS NULL OR p.finished_at IS NOT NULL
         ORDER BY e.task, e.parent LIMIT ?) o
  STRAIGHT_JOIN permitq_task c FORCE INDEX (PRIMARY) ON c.id = o.task
   FOR UPDATE
