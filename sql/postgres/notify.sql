-- Something may be claimed that could not be before: wake idle consumers, at COMMIT. (The text keeps a column of type void
-- away from the driver.)
SELECT count(pg_notify('permitq', '')::text)
