-- Once per connection; limits.sql follows. synchronous_commit stays the server's.
SET application_name = 'permitq';
SET timezone = 'UTC';
SET default_transaction_isolation = 'read committed';
-- Every statement here walks an index, and stops where it has enough: no scans, no sorts of whole ranges. So a plan that was
-- made and kept while the tables were small is right for large ones, too (and planning costs more than most statements do).
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SET jit = off;
-- Notice in minutes, not in hours, that the client's host is gone, or that a firewall has forgotten the connection.
SET tcp_keepalives_idle = 60;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 6;
-- Where the server can: notice within a statement that the client has gone.
DO $$ BEGIN
    PERFORM set_config('client_connection_check_interval', '2s', false);
EXCEPTION WHEN others THEN NULL;
END $$;
