-- One migration at a time in this database; 0 or NULL: another one takes long. DDL commits by itself here, so no
-- transaction could hold this lock. It goes with migrate_unlock, or with the connection.
SELECT GET_LOCK(CONCAT('permitq.', database()), 5)
