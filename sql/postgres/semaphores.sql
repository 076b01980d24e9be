-- Every semaphore and what its permits do. Waiting tasks are counted up to $1, so that looking never slows with the backlog.
SELECT s.name, s.max_permits, s.in_use,
       (SELECT count(*) FROM permitq_task t WHERE t.state = 'running' AND t.semaphore = s.name) AS held,
       (SELECT count(*) FROM permitq_cooling k WHERE k.semaphore = s.name) AS cooling,
       (SELECT count(*) FROM (SELECT 1 FROM permitq_task t
                               WHERE t.state = 'pending' AND t.semaphore = s.name LIMIT $1) w) AS waiting
  FROM permitq_semaphore s ORDER BY s.name
