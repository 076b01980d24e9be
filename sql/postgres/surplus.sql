-- Records of a job's instants beyond its newest $4, oldest first, behind $2, at most $5, with the run that each fired.
-- 'kept': it is not over.
SELECT i.id, t.id AS task, (t.id IS NOT NULL AND t.finished_at IS NULL)::int::bigint AS kept
  FROM permitq_instant i LEFT JOIN permitq_task t ON t.id = i.task AND i.fate = 'fired'
 WHERE i.job = $1 AND i.id > $2
   AND i.id <= (SELECT n.id FROM permitq_instant n WHERE n.job = $3 ORDER BY n.id DESC LIMIT 1 OFFSET $4)
 ORDER BY i.id LIMIT $5
