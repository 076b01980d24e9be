-- What became of planned instants, one or several in a row.
INSERT INTO permitq_instant (job, trigger_id, planned_at, last_at, instants, fate, task)
VALUES (?, ?, TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), ?, ?, ?)
