-- Every semaphore and what its permits do. Waiting tasks are counted up to ? (at most 10,000 here), so that looking never
-- slows with the backlog: an index step to the ten thousandth tells whether to count. (A LIMIT inside a count would be a
-- derived table, which cannot see the outer row.)
SELECT s.name, s.max_permits, s.in_use,
       (SELECT count(*) FROM permitq_task t FORCE INDEX (permitq_task_ready)
         WHERE t.state = 'running' AND t.semaphore = s.name) AS held,
       (SELECT count(*) FROM permitq_cooling k WHERE k.semaphore = s.name) AS cooling,
       LEAST(?, CASE WHEN (SELECT 1 FROM permitq_task t FORCE INDEX (permitq_task_ready)
                            WHERE t.state = 'pending' AND t.semaphore = s.name LIMIT 1 OFFSET 9999) IS NOT NULL
                     THEN 10000
                     ELSE (SELECT count(*) FROM permitq_task t FORCE INDEX (permitq_task_ready)
                            WHERE t.state = 'pending' AND t.semaphore = s.name) END) AS waiting
  FROM permitq_semaphore s ORDER BY s.name
