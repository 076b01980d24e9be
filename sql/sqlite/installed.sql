-- Is there a schema here at all?
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'permitq_schema'
