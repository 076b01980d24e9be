-- Why this host cannot be written to; NULL: it can. A file is its only host, so nobody asks.
SELECT CAST(NULL AS TEXT)
