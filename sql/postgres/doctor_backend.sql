-- Which of the server's sessions this is: behind a pooler not always the same.
SELECT pg_backend_pid()::bigint
