-- What the schema has, for `permitq doctor` to compare with what the migrations make.
SELECT type || ' ' || name FROM sqlite_master WHERE name LIKE 'permitq%'
