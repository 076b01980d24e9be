-- The unlocked look: one read that tells whether a claim could succeed. One index step per (semaphore, kind) that has
-- due tasks, never a scan of the backlog. Also: how many consumers share the permits, and how long until the next
-- scheduled task is due (microseconds; negative: overdue), and what is paused, as JSON. (ORDER BY with LIMIT 1 is one step whatever the statistics say;
-- min() is not, while they are old.)
WITH RECURSIVE ready (semaphore, kind) AS (
    SELECT s.value COLLATE "C",
           (SELECT t.kind FROM permitq_task t
             WHERE t.state = 'pending' AND t.semaphore = s.value COLLATE "C" ORDER BY t.kind LIMIT 1)
      FROM json_array_elements_text($1::json) s
    UNION ALL
    SELECT r.semaphore, (SELECT t.kind FROM permitq_task t
                          WHERE t.state = 'pending' AND t.semaphore = r.semaphore AND t.kind > r.kind
                          ORDER BY t.kind LIMIT 1)
      FROM ready r WHERE r.kind IS NOT NULL
)
SELECT s.name, s.max_permits, s.in_use, r.kind,
       (SELECT count(*) FROM permitq_consumer WHERE state = 'alive') AS alive,
       (extract(epoch FROM (SELECT run_at FROM permitq_task WHERE state = 'scheduled' ORDER BY run_at LIMIT 1)
                           - statement_timestamp()) * 1000000)::bigint AS next_due,
       (SELECT json_agg(json_build_object(
                   'what', p.what, 'name', p.name, 'wait', (extract(epoch FROM p.until - statement_timestamp()) * 1000000)::bigint,
                   'probed', EXISTS (SELECT 1 FROM permitq_task t
                                      WHERE t.id = p.task AND t.claim_no = p.claim_no AND t.state || '' = 'running')::int))::text
          FROM permitq_pause p) AS paused
  FROM permitq_semaphore s
  LEFT JOIN ready r ON r.semaphore = s.name AND r.kind IS NOT NULL
 WHERE s.name = ANY (ARRAY(SELECT json_array_elements_text($1::json)))
 ORDER BY s.name, r.kind
