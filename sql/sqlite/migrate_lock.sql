-- One migration at a time: BEGIN IMMEDIATE holds the write lock already.
SELECT 1
