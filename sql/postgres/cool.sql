-- Unclear ends: the permit goes from the task to a cooling row. in_use does not change.
INSERT INTO permitq_cooling (semaphore, task, claim_no, consumer, until, why)
SELECT t.semaphore, t.id, t.claim_no, t.consumer, t.until, j.why
  FROM json_to_recordset($1::json) AS j (id bigint, claim_no bigint, why text)
  JOIN permitq_task t ON t.id = j.id AND t.claim_no = j.claim_no
 WHERE t.state = 'running' AND j.why IS NOT NULL
