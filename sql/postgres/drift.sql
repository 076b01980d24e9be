-- A surplus is never just lowered: a running row may have been deleted by hand while its call goes on. $3 permits cool
-- for the longest bound ($2, microseconds) instead.
INSERT INTO permitq_cooling (semaphore, until, why)
SELECT $1, statement_timestamp() + $2 * interval '1 microsecond', 'drift' FROM generate_series(1, $3)
