-- A file has no sessions, and nothing stands between.
SELECT 0
