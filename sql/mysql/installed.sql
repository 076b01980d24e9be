-- Is there a schema here at all?
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'permitq_schema'
