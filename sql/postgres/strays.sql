-- Blocked tasks that nothing of ours leaves like that, at most $1: their parents are gone, or ended when nobody was told; or
-- they wait for another number of parents than they have. Reads what is blocked, whole.
SELECT id, waiting_for, parents, gone FROM (
    SELECT t.id, t.waiting_for,
           (SELECT count(*) FROM permitq_dependency e WHERE e.task = t.id AND e.open = 1) AS parents,
           (SELECT min(e.parent) FROM permitq_dependency e LEFT JOIN permitq_task p ON p.id = e.parent
             WHERE e.task = t.id AND e.open = 1
               AND (p.id IS NULL OR (p.finished_at IS NOT NULL AND p.dependents = 0))) AS gone
      FROM permitq_task t WHERE t.state = 'blocked') b
 WHERE waiting_for <> parents OR gone IS NOT NULL
 LIMIT $1
