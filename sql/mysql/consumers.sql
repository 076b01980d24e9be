-- Processes that are not gone.
SELECT id, name, host, pid, version, slots, serves, state,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', started_at) AS started_at,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lease_until) AS lease_until
  FROM permitq_consumer WHERE state <> 'gone' ORDER BY id
