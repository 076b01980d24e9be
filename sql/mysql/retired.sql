-- Consumers that are gone for longer than ? microseconds are forgotten; an unknown consumer counts as gone.
DELETE FROM permitq_consumer
 WHERE state = 'gone' AND lease_until < TIMESTAMPADD(MICROSECOND, -?, UTC_TIMESTAMP(6))
