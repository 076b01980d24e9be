-- Once per connection. Text between /*M! and */ is read by MariaDB only, text after /*!80000 by MySQL only. A waiting
-- statement gives up before the client does; MariaDB also ends a transaction whose client is frozen or cut off.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION time_zone = '+00:00',
    SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
    SESSION innodb_lock_wait_timeout = 5
    /*M! , SESSION max_statement_time = 8, SESSION idle_transaction_timeout = 10 */
    /*!80000 , SESSION max_execution_time = 8000 */;
-- On Galera: a transaction begins, and a lone SELECT reads, when this node has what was committed on any other before. A
-- process that has moved from one node to another finds its own claims there. Not every MariaDB knows the variable.
/*M! SET @permitq_causal = (SELECT if(count(*) > 0, 'SET SESSION wsrep_sync_wait = 1', 'DO 0')
                              FROM information_schema.session_variables WHERE variable_name = 'wsrep_sync_wait') */;
/*M! EXECUTE IMMEDIATE @permitq_causal */;
