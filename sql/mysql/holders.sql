-- Who holds a permit, or cools one.
SELECT t.semaphore, 'held' AS state, t.id AS task, t.claim_no, t.consumer, c.host, c.pid,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.started_at) AS since,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.until) AS until,
       NULL AS why, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.lease_until) AS lease_until
  FROM permitq_task t FORCE INDEX (permitq_task_ready) LEFT JOIN permitq_consumer c ON c.id = t.consumer
 WHERE t.state = 'running'
UNION ALL
SELECT k.semaphore, 'cooling', k.task, k.claim_no, k.consumer, c.host, c.pid,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', k.since), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', k.until), k.why, NULL
  FROM permitq_cooling k LEFT JOIN permitq_consumer c ON c.id = k.consumer
 ORDER BY 1, 8, 3
