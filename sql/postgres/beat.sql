-- Renews the lease of everything this consumer runs, in one row. 'gone' is final: no row changes then.
UPDATE permitq_consumer SET lease_until = clock_timestamp() + $1 * interval '1 microsecond'
 WHERE id = $2 AND state <> 'gone'
