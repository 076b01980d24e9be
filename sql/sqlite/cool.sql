-- Unclear ends: the permit goes from the task to a cooling row. in_use does not change.
INSERT INTO permitq_cooling (semaphore, task, claim_no, consumer, until, why)
SELECT t.semaphore, t.id, t.claim_no, t.consumer, t.until, j.value ->> 'why'
  FROM json_each($1) j
  JOIN permitq_task t ON t.id = (j.value ->> 'id') AND t.claim_no = (j.value ->> 'claim_no')
 WHERE t.state = 'running' AND j.value ->> 'why' IS NOT NULL
