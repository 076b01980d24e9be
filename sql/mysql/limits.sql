-- Once per connection, after session.sql. Statement, lock and idle limit, in milliseconds: a waiting statement gives up
-- before the client does; MariaDB also ends a transaction whose client is frozen or cut off (MySQL cannot, so that number
-- goes nowhere there). Text between /*M! and */ is read by MariaDB only, text after /*!80000 by MySQL only. Lock and idle
-- limit are whole seconds here, and 0 would not mean none.
SET /*M! SESSION max_statement_time = ? / 1000, */ /*!80000 SESSION max_execution_time = ?, */
    SESSION innodb_lock_wait_timeout = GREATEST(1, ? DIV 1000),
    /*M! SESSION idle_transaction_timeout = GREATEST(1, ? DIV 1000) */ /*!80000 @permitq_idle = ? */
