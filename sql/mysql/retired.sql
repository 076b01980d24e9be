-- Consumers that are gone for longer than ? microseconds are forgotten; an unknown consumer counts as gone. A plain DELETE
-- would wait for rows that it only passes: whoever holds a consumer's row must wait for nothing (see mark.sql).
DELETE c FROM (SELECT id FROM permitq_consumer
                WHERE state = 'gone' AND lease_until < TIMESTAMPADD(MICROSECOND, -?, UTC_TIMESTAMP(6))
                LIMIT 1000 FOR UPDATE SKIP LOCKED) g
  STRAIGHT_JOIN permitq_consumer c FORCE INDEX (PRIMARY) ON c.id = g.id
