-- A downstream was found down: nobody claims its tasks until a probe finds it up, in a second or as long as the downstream
-- asked for (microseconds), whichever is longer. Whoever else finds it down changes nothing.
INSERT INTO permitq_pause (what, name, until, failures, who, why)
VALUES ('downstream', $1, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + max(1000000, $2), 1, $3, $4)
    ON CONFLICT (what, name) DO NOTHING
