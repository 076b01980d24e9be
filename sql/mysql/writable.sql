-- Why this host cannot be written to; NULL: it can. Outside a Galera cluster the provider is 'none', and what wsrep says
-- means nothing. Newer servers say read_only in words. Text after /*M! is read by MariaDB only, text after /*!80000 by
-- MySQL only.
SELECT CASE WHEN @@global.read_only NOT IN ('0', 'OFF') THEN 'it is read-only'
            WHEN node.ready <> 'ON' THEN 'this node has lost its cluster, or is not part of it yet'
            WHEN node.state <> '4' THEN 'this node is not in step with its cluster' END
  FROM (SELECT max(CASE WHEN variable_name = 'wsrep_ready' THEN variable_value END) AS ready,
               max(CASE WHEN variable_name = 'wsrep_local_state' THEN variable_value END) AS state
          FROM /*M! information_schema.global_status */ /*!80000 performance_schema.global_status */
         WHERE variable_name IN ('wsrep_ready', 'wsrep_local_state')
           AND EXISTS (SELECT 1
                         FROM /*M! information_schema.global_variables */ /*!80000 performance_schema.global_variables */ v
                        WHERE v.variable_name = 'wsrep_provider' AND v.variable_value <> 'none')) node
