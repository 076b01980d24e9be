-- The end of the transaction unlocks.
SELECT 1
