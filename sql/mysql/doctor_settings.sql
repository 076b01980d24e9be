-- What `permitq doctor` judges: settings as they are in force in this session. MariaDB and MySQL call some by other names.
SHOW VARIABLES WHERE Variable_name IN
    ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog', 'max_connections', 'read_only',
     'tx_isolation', 'transaction_isolation', 'max_allowed_packet', 'max_statement_time', 'max_execution_time')
