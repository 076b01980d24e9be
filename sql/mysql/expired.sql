-- Consumers whose lease has passed. The reclaimer fences one only if it has read the same lease before.
SELECT id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_until) AS lease_until FROM permitq_consumer
 WHERE state <> 'gone' AND permitq_consumer.lease_until < UTC_TIMESTAMP(6)
