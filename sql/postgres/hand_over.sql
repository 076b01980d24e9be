-- A whole hand-over in one statement, and so in one round trip and one commit: the $5 ended attempts of the list $1, all of
-- them clear and final, give their permits to as many due tasks. All of that or nothing: where fewer are ours, others wait
-- for one of them, fewer are due, one has expired, the kind is paused, the max was lowered or we are not alive any more, no
-- row comes back, and the exchange goes its way step by step.
-- Its order, too: our own rows by ascending id, then tasks that nobody else has; the semaphore is only read: a lowered max is stale by a
-- commit at most.
WITH ended AS MATERIALIZED (
    SELECT t.id, t.claim_no, t.kind, t.semaphore, t.consumer, t.started_at, t.run_at, t.max_attempts, t.on_abandon,
           t.dependents, j.called_after, j.outcome, j.status, j.state, j.attempts, j.result, j.error
      FROM json_to_recordset($1::json)
           AS j (id bigint, claim_no bigint, called_after bigint, outcome text, status integer,
                 state text, attempts integer, result text, error text)
      JOIN permitq_task t ON t.id = j.id AND t.claim_no = j.claim_no
     WHERE t.consumer = $2 AND t.state = 'running'
     ORDER BY t.id
       FOR UPDATE OF t
), room AS MATERIALIZED (
    SELECT $5::bigint AS permits
      FROM permitq_semaphore s
     WHERE s.name = $3 AND s.in_use <= s.max_permits
       AND (SELECT count(*) FROM ended WHERE dependents = 0) = $5
       AND EXISTS (SELECT 1 FROM permitq_consumer c WHERE c.id = $2 AND c.state = 'alive')
), open AS MATERIALIZED (
    SELECT p.kind COLLATE "C" AS kind, p.hold, p.max_attempts, p.on_abandon
      FROM json_to_recordset($4::json) AS p (kind text, hold bigint, max_attempts integer, on_abandon text, downstream text)
     WHERE NOT EXISTS (SELECT 1 FROM permitq_pause s
                        WHERE s.what = 'fleet' OR (s.what = 'semaphore' AND s.name = $3) OR (s.what = 'kind' AND s.name = p.kind)
                           OR (s.what = 'downstream' AND s.name = p.downstream))
), picked AS MATERIALIZED (
    SELECT q.*, p.hold, coalesce(q.max_attempts, p.max_attempts) AS budget, coalesce(q.on_abandon, p.on_abandon) AS policy
      FROM open p
     CROSS JOIN LATERAL (
           SELECT t.id, t.claim_no + 1 AS claim_no, t.kind, t.semaphore, t.biz_key, t.payload, t.priority, t.run_at,
                  t.attempts + 1 AS attempts, t.max_attempts, t.on_abandon, t.timeout, t.result, t.error,
                  t.expires_at <= statement_timestamp() AS expired
             FROM permitq_task t
            WHERE t.state = 'pending' AND t.semaphore = $3 AND t.kind = p.kind
            ORDER BY t.priority DESC, t.run_at, t.id
            LIMIT coalesce((SELECT permits FROM room), 0)
              FOR UPDATE SKIP LOCKED) q
     ORDER BY q.priority DESC, q.run_at, q.id
     LIMIT coalesce((SELECT permits FROM room), 0)
), swap AS MATERIALIZED (
    SELECT count(*) AS permits FROM picked HAVING count(*) = $5 AND bool_or(expired) IS NOT TRUE
), logged AS (
    INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, called_at, ended_at,
                                 permit_released_at, outcome, status, error, ended_by)
    SELECT id, claim_no, kind, semaphore, consumer, started_at, started_at + called_after * interval '1 microsecond',
           statement_timestamp(), statement_timestamp(), outcome, status, error, consumer
      FROM ended, swap
), moved AS (
    UPDATE permitq_task t
       SET state = n.state, claim_no = n.claim_no, attempts = n.attempts, consumer = n.consumer, until = n.until,
           started_at = n.started_at, finished_at = n.finished_at, max_attempts = n.max_attempts,
           on_abandon = n.on_abandon, result = n.result, error = n.error
      FROM swap, (SELECT id, claim_no, state, attempts, NULL AS consumer, NULL::timestamptz AS until, started_at,
                         statement_timestamp() AS finished_at, max_attempts, on_abandon, result, error
                    FROM ended
                  UNION ALL
                  SELECT id, claim_no, 'running', attempts, $2, statement_timestamp() + hold * interval '1 microsecond',
                         statement_timestamp(), NULL, budget, policy, result, error
                    FROM picked) n
     WHERE t.id = n.id
)
SELECT id, picked.claim_no, kind, semaphore, biz_key, payload, attempts, max_attempts, on_abandon, timeout
  FROM picked, swap
 ORDER BY priority DESC, run_at, id
