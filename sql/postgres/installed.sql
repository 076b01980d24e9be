-- Is there a schema here at all?
SELECT count(*) FROM pg_class WHERE oid = to_regclass('permitq_schema')
