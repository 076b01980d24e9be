-- Consumers that are gone for longer than $1 microseconds are forgotten; an unknown consumer counts as gone.
DELETE FROM permitq_consumer
 WHERE state = 'gone' AND lease_until < statement_timestamp() - $1 * interval '1 microsecond'
