-- Unclear ends: the permit goes from the task to a cooling row. in_use does not change.
INSERT INTO permitq_cooling (semaphore, task, claim_no, consumer, until, why)
SELECT t.semaphore, t.id, t.claim_no, t.consumer, t.until, j.why
  FROM JSON_TABLE(?, '$[*]' COLUMNS (
           id BIGINT PATH '$.id', claim_no BIGINT PATH '$.claim_no', why LONGTEXT CHARACTER SET utf8mb4 PATH '$.why')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
 WHERE t.claim_no = j.claim_no AND t.state = 'running' AND j.why IS NOT NULL
