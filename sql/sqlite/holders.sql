-- Who holds a permit, or cools one.
SELECT t.semaphore, 'held' AS state, t.id AS task, t.claim_no, t.consumer, c.host, c.pid, t.started_at AS since, t.until,
       NULL AS why, c.lease_until
  FROM permitq_task t LEFT JOIN permitq_consumer c ON c.id = t.consumer
 WHERE t.state = 'running'
UNION ALL
SELECT k.semaphore, 'cooling', k.task, k.claim_no, k.consumer, c.host, c.pid, k.since, k.until, k.why, NULL
  FROM permitq_cooling k LEFT JOIN permitq_consumer c ON c.id = k.consumer
 ORDER BY 1, 8, 3
