-- Takes (+) or frees (-) permits, always in the transaction that moves the tasks or ends the cooling. Never below zero:
-- a counter edited by hand is the auditor's to repair, not a reason to fail a finish.
-- A permit that becomes free while tasks wait wakes idle consumers. It happens only without a hand-over, so it costs
-- nothing while the fleet is busy.
WITH moved AS (
    UPDATE permitq_semaphore SET in_use = greatest(0, in_use + $1) WHERE name = $2
    RETURNING in_use < max_permits AS free
)
SELECT count(pg_notify('permitq', '')::text) FROM moved
 WHERE $1 < 0 AND free AND EXISTS (SELECT 1 FROM permitq_task WHERE state = 'pending' AND semaphore = $2)
