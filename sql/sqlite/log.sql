-- The attempt log: one row per ended attempt that still runs under its claim_no (and for this consumer, where
-- one is named): as many rows as are still ours. 'why'
-- (cools) keeps permit_released_at open.
INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, called_at, ended_at,
                             permit_released_at, outcome, status, error, ended_by)
SELECT t.id, t.claim_no, t.kind, t.semaphore, t.consumer, t.started_at, t.started_at + (j.value ->> 'called_after'),
       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000,
       CASE WHEN j.value ->> 'why' IS NULL
            THEN CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 END,
       j.value ->> 'outcome', j.value ->> 'status', j.value ->> 'error', $1
  FROM json_each($2) j
  JOIN permitq_task t ON t.id = (j.value ->> 'id') AND t.claim_no = (j.value ->> 'claim_no')
 WHERE t.state = 'running' AND t.consumer = coalesce($3, t.consumer)
