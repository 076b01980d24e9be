-- One migration at a time; the lock goes with the transaction.
SELECT 1 FROM pg_advisory_xact_lock(hashtextextended('permitq migrate', 0))
