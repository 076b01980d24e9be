-- Consumers whose lease has passed. The reclaimer fences one only if it has read the same lease before.
SELECT id, lease_until FROM permitq_consumer
 WHERE state <> 'gone' AND lease_until < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
