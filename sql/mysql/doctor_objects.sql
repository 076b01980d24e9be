-- What the schema has, for `permitq doctor` to compare with what the migrations make. A user without the right TRIGGER sees
-- no trigger.
SELECT CONCAT(IF(table_type = 'VIEW', 'view ', 'table '), table_name) AS object
  FROM information_schema.tables WHERE table_schema = database() AND table_name LIKE 'permitq%'
UNION ALL
SELECT DISTINCT CONCAT('index ', table_name, '.', index_name)
  FROM information_schema.statistics WHERE table_schema = database() AND table_name LIKE 'permitq%'
UNION ALL
SELECT CONCAT('trigger ', trigger_name)
  FROM information_schema.triggers WHERE trigger_schema = database()
UNION ALL
SELECT CONCAT('table ', table_name, ' is ', engine, ' ', table_collation)
  FROM information_schema.tables
 WHERE table_schema = database() AND table_name LIKE 'permitq%' AND table_type = 'BASE TABLE'
   AND (engine <> 'InnoDB' OR table_collation NOT LIKE 'utf8mb4%bin')
