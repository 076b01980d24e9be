-- A downstream was found down: nobody claims its tasks until a probe finds it up, in a second or as long as the downstream
-- asked for (microseconds), whichever is longer. Whoever else finds it down changes nothing.
INSERT INTO permitq_pause (what, name, until, failures, who, why)
VALUES ('downstream', ?, TIMESTAMPADD(MICROSECOND, GREATEST(1000000, ?), UTC_TIMESTAMP(6)), 1, ?, ?)
    ON DUPLICATE KEY UPDATE what = permitq_pause.what
