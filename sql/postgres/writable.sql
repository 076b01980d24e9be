-- Why this host cannot be written to; NULL: it can.
SELECT CASE WHEN pg_is_in_recovery() THEN 'it is a standby'
            WHEN current_setting('transaction_read_only') = 'on' THEN 'it is read-only' END
