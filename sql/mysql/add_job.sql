-- A job, given as JSON; one of this name that is there already is left alone.
INSERT INTO permitq_job (name, kind, semaphore, payload, priority, timeout, max_attempts, on_abandon,
                         key_template, misfire, misfire_after, misfire_max, overlap)
SELECT j.name, j.kind, j.semaphore, j.payload, j.priority, j.timeout, j.max_attempts, j.on_abandon,
       j.key_template, j.misfire, j.misfire_after, j.misfire_max, j.overlap
  FROM JSON_TABLE(?, '$' COLUMNS (
           name LONGTEXT CHARACTER SET utf8mb4 PATH '$.name',
           kind LONGTEXT CHARACTER SET utf8mb4 PATH '$.kind',
           semaphore LONGTEXT CHARACTER SET utf8mb4 PATH '$.semaphore',
           payload LONGTEXT CHARACTER SET utf8mb4 PATH '$.payload',
           priority BIGINT PATH '$.priority',
           timeout DOUBLE PATH '$.timeout',
           max_attempts BIGINT PATH '$.max_attempts',
           on_abandon LONGTEXT CHARACTER SET utf8mb4 PATH '$.on_abandon',
           key_template LONGTEXT CHARACTER SET utf8mb4 PATH '$.key_template',
           misfire LONGTEXT CHARACTER SET utf8mb4 PATH '$.misfire',
           misfire_after DOUBLE PATH '$.misfire_after',
           misfire_max BIGINT PATH '$.misfire_max',
           overlap LONGTEXT CHARACTER SET utf8mb4 PATH '$.overlap')) j
    ON DUPLICATE KEY UPDATE name = permitq_job.name
