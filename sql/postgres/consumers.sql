-- Processes that are not gone.
SELECT id, name, host, pid, version, slots, serves, state,
       (extract(epoch FROM started_at) * 1000000)::bigint AS started_at,
       (extract(epoch FROM lease_until) * 1000000)::bigint AS lease_until
  FROM permitq_consumer WHERE state <> 'gone' ORDER BY id
