-- A process starts. Registration counts as the first beat. 'lease' is in microseconds.
INSERT INTO permitq_consumer (id, name, host, pid, version, slots, serves, lease_until)
SELECT $1 ->> 'id', $1 ->> 'name', $1 ->> 'host', $1 ->> 'pid', $1 ->> 'version', $1 ->> 'slots', $1 ->> 'serves',
       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ($1 ->> 'lease')
