-- Tasks that failed because one of these (a JSON list of ids) did, and that no other parent's end keeps from running now.
SELECT DISTINCT c.id
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_dependency e FORCE INDEX (permitq_dependency_parent) ON e.parent = j.id
  STRAIGHT_JOIN permitq_task c FORCE INDEX (PRIMARY) ON c.id = e.task
 WHERE e.any_end = 0 AND c.state = 'failed' AND c.error LIKE 'upstream failed: %'
   AND NOT EXISTS (SELECT 1 FROM permitq_dependency o LEFT JOIN permitq_task q ON q.id = o.parent
                    WHERE o.task = c.id AND o.any_end = 0
                      AND (q.id IS NULL OR q.state IN ('failed', 'cancelled')))
 ORDER BY c.id
