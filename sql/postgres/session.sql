-- Once per connection. A waiting statement gives up before the client does, and a client that is frozen or cut off
-- inside a transaction loses it, with its locks. synchronous_commit stays the server's.
SET application_name = 'permitq';
SET timezone = 'UTC';
SET default_transaction_isolation = 'read committed';
SET statement_timeout = '8s';
SET lock_timeout = '5s';
SET idle_in_transaction_session_timeout = '10s';
-- Every statement here reaches its rows through an index. A plan made and kept while the tables were small must not
-- scan them when they have grown.
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off;
-- Where the server can: notice within a statement that the client has gone.
DO $$ BEGIN
    PERFORM set_config('client_connection_check_interval', '2s', false);
EXCEPTION WHEN others THEN NULL;
END $$;
