-- What `permitq doctor` judges: settings as they are in force in this session.
SELECT name, setting FROM pg_settings
 WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'server_encoding',
                'max_connections', 'superuser_reserved_connections', 'transaction_isolation', 'transaction_read_only',
                'statement_timeout', 'lock_timeout')
