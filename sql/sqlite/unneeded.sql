-- Which of these tasks (a JSON list) retention may take: finished before $2 (microseconds), and needed by nothing.
SELECT t.id FROM json_each($1) j JOIN permitq_task t ON t.id = j.value
 WHERE t.finished_at < $2 AND t.dependents = 0 AND NOT EXISTS (SELECT 1 FROM permitq_cooling k WHERE k.task = t.id)
