-- A process starts. Registration counts as the first beat. 'lease' is in microseconds.
INSERT INTO permitq_consumer (id, name, host, pid, version, slots, serves, lease_until)
SELECT j.id, j.name, j.host, j.pid, j.version, j.slots, j.serves, TIMESTAMPADD(MICROSECOND, j.lease, UTC_TIMESTAMP(6))
  FROM JSON_TABLE(?, '$' COLUMNS (
           id LONGTEXT CHARACTER SET utf8mb4 PATH '$.id',
           name LONGTEXT CHARACTER SET utf8mb4 PATH '$.name',
           host LONGTEXT CHARACTER SET utf8mb4 PATH '$.host',
           pid BIGINT PATH '$.pid',
           version LONGTEXT CHARACTER SET utf8mb4 PATH '$.version',
           slots BIGINT PATH '$.slots',
           serves LONGTEXT CHARACTER SET utf8mb4 PATH '$.serves',
           lease BIGINT PATH '$.lease')) j
