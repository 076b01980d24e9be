-- Once per connection, after session.sql. Statement, lock and idle limit, in milliseconds: SQLite has none of them. Its
-- only wait is the one for the write lock, and that is the store's own.
SELECT $1, $2, $3
