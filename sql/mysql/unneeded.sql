-- Which of these tasks (a JSON list) retention may take: finished before ? (microseconds), and needed by nothing; locked
-- through PRIMARY. What somebody else has it leaves for later.
SELECT t.id
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
 WHERE t.finished_at < TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')
   AND t.dependents = 0 AND NOT EXISTS (SELECT 1 FROM permitq_cooling k WHERE k.task = t.id)
   FOR UPDATE SKIP LOCKED
