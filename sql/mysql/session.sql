-- Once per connection. Text between /*M! and */ is read by MariaDB only, text after /*!80000 by MySQL only. A waiting
-- statement gives up before the client does; MariaDB also ends a transaction whose client is frozen or cut off.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION time_zone = '+00:00',
    SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
    SESSION innodb_lock_wait_timeout = 5
    /*M! , SESSION max_statement_time = 8, SESSION idle_transaction_timeout = 10 */
    /*!80000 , SESSION max_execution_time = 8000 */;
