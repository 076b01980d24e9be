-- Processes that are not gone.
SELECT id, name, host, pid, version, slots, serves, state, started_at, lease_until
  FROM permitq_consumer WHERE state <> 'gone' ORDER BY id
