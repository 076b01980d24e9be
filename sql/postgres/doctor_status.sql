-- What `permitq doctor` judges: how it stands. Everybody may see these; pg_stat_activity hides most from most.
SELECT 'connections' AS name, coalesce(sum(numbackends), 0)::text AS value FROM pg_stat_database
UNION ALL SELECT 'encrypted', coalesce(bool_or(ssl), false)::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()
