-- The unlocked look: one read that tells whether a claim could succeed. One index step per (semaphore, kind) that has
-- due tasks, never a scan of the backlog. Also: how many consumers share the permits, and how long until the next
-- scheduled task is due (microseconds; negative: overdue), and what is paused, as JSON.
WITH RECURSIVE ready (semaphore, kind) AS (
    SELECT value, (SELECT min(kind) FROM permitq_task WHERE state = 'pending' AND semaphore = value)
      FROM json_each($1)
    UNION ALL
    SELECT semaphore, (SELECT min(t.kind) FROM permitq_task t
                        WHERE t.state = 'pending' AND t.semaphore = ready.semaphore AND t.kind > ready.kind)
      FROM ready WHERE kind IS NOT NULL
)
SELECT s.name, s.max_permits, s.in_use, r.kind,
       (SELECT count(*) FROM permitq_consumer WHERE state = 'alive') AS alive,
       (SELECT min(run_at) FROM permitq_task WHERE state = 'scheduled') - CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS next_due,
       (SELECT json_group_array(json_object(
                   'what', p.what, 'name', p.name, 'wait', p.until - CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000,
                   'probed', EXISTS (SELECT 1 FROM permitq_task t WHERE t.id = p.task AND t.claim_no = p.claim_no
                                                 AND t.state || '' = 'running')))
          FROM permitq_pause p) AS paused
  FROM permitq_semaphore s
  LEFT JOIN ready r ON r.semaphore = s.name AND r.kind IS NOT NULL
 WHERE s.name IN (SELECT value FROM json_each($1))
 ORDER BY s.name, r.kind
