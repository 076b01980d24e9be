-- The tasks that this one waits for or did, and those that wait or did for it; at most $2 of each.
(SELECT 'parent' AS role, e.parent AS id, e.any_end, e.open, t.kind, t.biz_key, t.state
   FROM permitq_dependency e LEFT JOIN permitq_task t ON t.id = e.parent WHERE e.task = $1 ORDER BY e.parent LIMIT $2)
UNION ALL
(SELECT 'child', e.task, e.any_end, e.open, t.kind, t.biz_key, t.state
   FROM permitq_dependency e LEFT JOIN permitq_task t ON t.id = e.task WHERE e.parent = $3 ORDER BY e.open, e.task LIMIT $4)
