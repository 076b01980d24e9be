-- Declares a consumer gone, for ever, if its lease is still the one that was read, and still over.
UPDATE permitq_consumer SET state = 'gone'
 WHERE id = $1 AND state <> 'gone' AND lease_until = $2
   AND lease_until < CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
