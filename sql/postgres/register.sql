-- A process starts. Registration counts as the first beat. 'lease' is in microseconds.
INSERT INTO permitq_consumer (id, name, host, pid, version, slots, serves, lease_until)
SELECT id, name, host, pid, version, slots, serves, clock_timestamp() + lease * interval '1 microsecond'
  FROM json_to_record($1::json)
       AS (id text, name text, host text, pid bigint, version text, slots integer, serves text, lease bigint)
