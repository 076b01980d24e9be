-- What became of planned instants, one or several in a row.
INSERT INTO permitq_instant (job, trigger_id, planned_at, last_at, instants, fate, task)
VALUES ($1, $2, 'epoch'::timestamptz + $3 * interval '1 microsecond', 'epoch'::timestamptz + $4 * interval '1 microsecond', $5, $6, $7)
