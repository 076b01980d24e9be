-- The tasks that this one waits for or did, and those that wait or did for it; at most the second ? of each.
(SELECT 'parent' AS role, e.parent AS id, e.any_end, e.open, t.kind, t.biz_key, t.state
   FROM permitq_dependency e LEFT JOIN permitq_task t ON t.id = e.parent WHERE e.task = ? ORDER BY e.parent LIMIT ?)
UNION ALL
(SELECT 'child', e.task, e.any_end, e.open, t.kind, t.biz_key, t.state
   FROM permitq_dependency e LEFT JOIN permitq_task t ON t.id = e.task WHERE e.parent = ? ORDER BY e.open, e.task LIMIT ?)
