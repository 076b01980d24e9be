-- Declares a consumer gone, for ever, if its lease is still the one that was read, and still over.
UPDATE permitq_consumer SET state = 'gone'
 WHERE id = ? AND state <> 'gone' AND lease_until = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')
   AND lease_until < UTC_TIMESTAMP(6)
