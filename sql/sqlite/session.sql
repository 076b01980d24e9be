-- Once per connection. A commit is on the disk before it is answered (FULL). The short busy_timeout leaves waiting to
-- the store's own jittered retry: SQLite's built-in waits grow to 100 ms and starve whoever waits longest.
PRAGMA busy_timeout = 2;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
