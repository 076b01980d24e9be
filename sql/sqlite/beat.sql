-- Renews the lease of everything this consumer runs, in one row. 'gone' is final: no row changes then.
UPDATE permitq_consumer SET lease_until = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + $1
 WHERE id = $2 AND state <> 'gone'
