-- What answers here. Before session.sql, which an older server would stumble over.
SELECT version()
