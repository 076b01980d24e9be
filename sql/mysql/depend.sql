-- Adds edges, a JSON list.
INSERT INTO permitq_dependency (task, parent, any_end)
SELECT j.task, j.parent, j.any_end
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
           task BIGINT PATH '$.task', parent BIGINT PATH '$.parent', any_end BIGINT PATH '$.any_end')) j
