-- A surplus is never just lowered: a running row may have been deleted by hand while its call goes on. $3 permits cool
-- for the longest bound ($2, microseconds) instead.
WITH RECURSIVE n (i) AS (SELECT 1 WHERE $3 > 0 UNION ALL SELECT i + 1 FROM n WHERE i < $3)
INSERT INTO permitq_cooling (semaphore, until, why)
SELECT $1, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + $2, 'drift' FROM n
