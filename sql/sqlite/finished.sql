-- What retention looks at: tasks in a final state that finished before $6 (microseconds), oldest first, behind ($2, $3), at
-- most $7. 'kept' are those that something still needs: here and in unneeded.sql a condition for each, by an index.
SELECT t.id, t.finished_at, t.claim_no,
       (t.dependents = 1 OR EXISTS (SELECT 1 FROM permitq_cooling k WHERE k.task = t.id)) AS kept
  FROM permitq_task t INDEXED BY permitq_task_finished
 WHERE t.finished_at IS NOT NULL AND t.state = $1 AND (t.finished_at, t.id) > ($2, $3)
   AND t.state = $4 AND t.finished_at >= $5 AND t.finished_at < $6
 ORDER BY t.finished_at, t.id LIMIT $7
