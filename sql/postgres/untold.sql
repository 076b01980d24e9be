-- Ended tasks whose end is not told to all dependents yet, at most $1; the next one to look takes others.
SELECT id FROM permitq_task WHERE dependents = 1 AND finished_at IS NOT NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
