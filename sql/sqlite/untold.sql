-- Ended tasks whose end is not told to all dependents yet, at most $1.
SELECT id FROM permitq_task WHERE dependents = 1 AND finished_at IS NOT NULL ORDER BY id LIMIT $1
