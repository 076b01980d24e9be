-- Once per connection; limits.sql follows.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION time_zone = '+00:00',
    SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
    /*!80000 , SESSION wait_timeout = 600 */;
-- On Galera: a transaction begins, and a lone SELECT reads, when this node has what was committed on any other before. A
-- process that has moved from one node to another finds its own claims there. Not every MariaDB knows the variable.
/*M! SET @permitq_causal = (SELECT if(count(*) > 0, 'SET SESSION wsrep_sync_wait = 1', 'DO 0')
                              FROM information_schema.session_variables WHERE variable_name = 'wsrep_sync_wait') */;
/*M! EXECUTE IMMEDIATE @permitq_causal */;
