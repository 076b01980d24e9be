-- Who holds a permit, or cools one.
SELECT t.semaphore, 'held' AS state, t.id AS task, t.claim_no, t.consumer, c.host, c.pid,
       (extract(epoch FROM t.started_at) * 1000000)::bigint AS since,
       (extract(epoch FROM t.until) * 1000000)::bigint AS until,
       NULL AS why, (extract(epoch FROM c.lease_until) * 1000000)::bigint AS lease_until
  FROM permitq_task t LEFT JOIN permitq_consumer c ON c.id = t.consumer
 WHERE t.state = 'running'
UNION ALL
SELECT k.semaphore, 'cooling', k.task, k.claim_no, k.consumer, c.host, c.pid,
       (extract(epoch FROM k.since) * 1000000)::bigint, (extract(epoch FROM k.until) * 1000000)::bigint, k.why, NULL
  FROM permitq_cooling k LEFT JOIN permitq_consumer c ON c.id = k.consumer
 ORDER BY 1, 8, 3
