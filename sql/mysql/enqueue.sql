-- Inserts a JSON list of tasks, in its order; a business key that exists already is left alone. (Not INSERT IGNORE,
-- which would also bend values that do not fit.) 'at', 'delay' and the deadline are microseconds; the trigger turns a future task into
-- a scheduled one. LONGTEXT and BIGINT in JSON_TABLE: a narrower type there would cut silently, the table refuses.
INSERT INTO permitq_task (kind, semaphore, biz_key, payload, priority, run_at, timeout, max_attempts, on_abandon, source, job,
                          expires_at, waiting_for)
SELECT j.kind, j.semaphore, j.biz_key, j.payload, j.priority,
       coalesce(TIMESTAMPADD(MICROSECOND, j.at, TIMESTAMP'1970-01-01 00:00:00'),
                TIMESTAMPADD(MICROSECOND, j.delay, UTC_TIMESTAMP(6))),
       j.timeout, j.max_attempts, j.on_abandon, j.source, j.job,
       coalesce(TIMESTAMPADD(MICROSECOND, j.expires_at, TIMESTAMP'1970-01-01 00:00:00'),
                TIMESTAMPADD(MICROSECOND, j.expires_in, UTC_TIMESTAMP(6))),
       j.waiting_for
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
           nr FOR ORDINALITY,
           kind LONGTEXT CHARACTER SET utf8mb4 PATH '$.kind',
           semaphore LONGTEXT CHARACTER SET utf8mb4 PATH '$.semaphore',
           biz_key LONGTEXT CHARACTER SET utf8mb4 PATH '$.biz_key',
           payload LONGTEXT CHARACTER SET utf8mb4 PATH '$.payload',
           priority BIGINT PATH '$.priority',
           at BIGINT PATH '$.at',
           delay BIGINT PATH '$.delay',
           timeout DOUBLE PATH '$.timeout',
           max_attempts BIGINT PATH '$.max_attempts',
           on_abandon LONGTEXT CHARACTER SET utf8mb4 PATH '$.on_abandon',
           source LONGTEXT CHARACTER SET utf8mb4 PATH '$.source',
           job LONGTEXT CHARACTER SET utf8mb4 PATH '$.job',
           expires_at BIGINT PATH '$.expires_at',
           expires_in BIGINT PATH '$.expires_in',
           waiting_for BIGINT PATH '$.waiting_for')) j
 ORDER BY j.nr
    ON DUPLICATE KEY UPDATE id = permitq_task.id
