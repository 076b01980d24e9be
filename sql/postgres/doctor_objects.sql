-- What the schema has, for `permitq doctor` to compare with what the migrations make. An index that was cut short while it
-- was built, and a trigger that is switched off, do not count.
SELECT CASE relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || relname::text
  FROM pg_class WHERE relkind IN ('r', 'p', 'v') AND relname LIKE 'permitq%' AND pg_table_is_visible(oid)
UNION ALL
SELECT 'index ' || c.relname::text
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indisvalid AND pg_table_is_visible(i.indrelid)
UNION ALL
SELECT 'trigger ' || tgname::text
  FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND pg_table_is_visible(tgrelid)
