-- Records of a job's instants beyond its newest so many, oldest first, behind an id, with the run that each fired. 'kept':
-- it is not over.
SELECT i.id, t.id AS task, t.id IS NOT NULL AND t.finished_at IS NULL AS kept
  FROM permitq_instant i FORCE INDEX (permitq_instant_job)
  LEFT JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = i.task AND i.fate = 'fired'
 WHERE i.job = ? AND i.id > ?
   AND i.id <= (SELECT n.id FROM permitq_instant n FORCE INDEX (permitq_instant_job)
                 WHERE n.job = ? ORDER BY n.id DESC LIMIT 1 OFFSET ?)
 ORDER BY i.id LIMIT ?
