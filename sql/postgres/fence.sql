-- Declares a consumer gone, for ever, if its lease is still the one that was read, and still over.
UPDATE permitq_consumer SET state = 'gone'
 WHERE id = $1 AND state <> 'gone' AND lease_until = 'epoch'::timestamptz + $2 * interval '1 microsecond'
   AND lease_until < statement_timestamp()
