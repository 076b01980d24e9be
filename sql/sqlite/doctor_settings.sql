-- What `permitq doctor` judges: settings as they are in force in this session.
SELECT 'journal_mode' AS name, CAST(journal_mode AS TEXT) AS setting FROM pragma_journal_mode
UNION ALL SELECT 'synchronous', CAST(synchronous AS TEXT) FROM pragma_synchronous
