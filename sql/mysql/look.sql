-- The unlocked look: one read that tells whether a claim could succeed. GROUP BY over the leading columns of the index is
-- a loose scan: one index step per (semaphore, kind) that has due tasks, never the backlog. Also: how many consumers
-- share the permits, and how long until the next scheduled task is due (microseconds; negative: overdue), and what is paused, as JSON.
SELECT s.name, s.max_permits, s.in_use, r.kind,
       (SELECT count(*) FROM permitq_consumer WHERE state = 'alive') AS alive,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6),
                     (SELECT min(run_at) FROM permitq_task FORCE INDEX (permitq_task_due) WHERE state = 'scheduled')) AS next_due,
       (SELECT CAST(JSON_ARRAYAGG(JSON_OBJECT(
                   'what', p.what, 'name', p.name, 'wait', TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), p.until),
                   'probed', (SELECT count(*) FROM permitq_task t FORCE INDEX (PRIMARY)
                               WHERE t.id = p.task AND t.claim_no = p.claim_no AND t.state = 'running'))) AS CHAR)
          FROM permitq_pause p) AS paused
  FROM JSON_TABLE(?, '$[*]' COLUMNS (name LONGTEXT CHARACTER SET utf8mb4 PATH '$')) j
  STRAIGHT_JOIN permitq_semaphore s ON s.name = j.name
  LEFT JOIN (SELECT state, semaphore, kind FROM permitq_task FORCE INDEX (permitq_task_ready)
              WHERE state = 'pending' GROUP BY state, semaphore, kind) r
    ON r.semaphore = s.name
 ORDER BY s.name, r.kind
