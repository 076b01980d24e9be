-- A surplus is never just lowered: a running row may have been deleted by hand while its call goes on. As many permits
-- as the last ? says cool for the longest bound (microseconds) instead.
INSERT INTO permitq_cooling (semaphore, until, why)
SELECT ?, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), 'drift'
  FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', ? - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) j
