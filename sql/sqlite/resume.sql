-- A person lets it go on. Deleting the row by hand is as good.
DELETE FROM permitq_pause WHERE what = $1 AND name = $2
