-- Consumers whose lease has passed. The reclaimer fences one only if it has read the same lease before.
SELECT id, (extract(epoch FROM lease_until) * 1000000)::bigint AS lease_until FROM permitq_consumer
 WHERE state <> 'gone' AND permitq_consumer.lease_until < statement_timestamp()
