-- Renews the lease of everything this consumer runs, in one row. 'gone' is final: no row changes then. (No UPDATE answers
-- rows here, so held.sql follows.)
UPDATE permitq_consumer SET lease_until = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))
 WHERE id = ? AND state <> 'gone'
