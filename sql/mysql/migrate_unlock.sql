-- The next migration may come.
SELECT RELEASE_LOCK(CONCAT('permitq.', database()))
