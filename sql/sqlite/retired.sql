-- Consumers that are gone for longer than $1 microseconds are forgotten; an unknown consumer counts as gone.
DELETE FROM permitq_consumer WHERE state = 'gone' AND lease_until < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - $1
