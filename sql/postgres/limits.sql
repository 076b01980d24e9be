-- Once per connection, after session.sql. Statement, lock and idle limit, in milliseconds: a waiting statement gives up
-- before the client does, and a client that is frozen or cut off inside a transaction loses it, with its locks.
SELECT set_config('statement_timeout', $1::bigint::text, false),
       set_config('lock_timeout', $2::bigint::text, false),
       set_config('idle_in_transaction_session_timeout', $3::bigint::text, false)
