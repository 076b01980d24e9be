-- Which of the server's sessions this is: behind a pooler not always the same.
SELECT CAST(connection_id() AS SIGNED)
