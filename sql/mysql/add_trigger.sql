-- A trigger, given as JSON with its instants in microseconds.
INSERT INTO permitq_trigger (job, kind, expression, dialect, zone, every, start_at, end_at, next_fire_at)
SELECT j.job, j.kind, j.expression, j.dialect, j.zone, j.every,
       TIMESTAMPADD(MICROSECOND, j.start_at, TIMESTAMP'1970-01-01 00:00:00'),
       TIMESTAMPADD(MICROSECOND, j.end_at, TIMESTAMP'1970-01-01 00:00:00'),
       TIMESTAMPADD(MICROSECOND, j.next_fire_at, TIMESTAMP'1970-01-01 00:00:00')
  FROM JSON_TABLE(?, '$' COLUMNS (
           job LONGTEXT CHARACTER SET utf8mb4 PATH '$.job',
           kind LONGTEXT CHARACTER SET utf8mb4 PATH '$.kind',
           expression LONGTEXT CHARACTER SET utf8mb4 PATH '$.expression',
           dialect LONGTEXT CHARACTER SET utf8mb4 PATH '$.dialect',
           zone LONGTEXT CHARACTER SET utf8mb4 PATH '$.zone',
           every DOUBLE PATH '$.every',
           start_at BIGINT PATH '$.start_at',
           end_at BIGINT PATH '$.end_at',
           next_fire_at BIGINT PATH '$.next_fire_at')) j
