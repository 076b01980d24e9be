-- Not worth starting any more: these tasks (a JSON list of ids) are called off.
UPDATE permitq_task SET state = 'cancelled', finished_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, waiting_for = 0, error = 'expired'
 WHERE id IN (SELECT value FROM json_each($1)) AND state || '' IN ('blocked', 'scheduled', 'pending') AND expires_at <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
