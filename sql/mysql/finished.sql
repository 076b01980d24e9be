-- What retention looks at: tasks in a final state that finished before an instant (microseconds), oldest first, behind an
-- instant and an id. Two ranges of the index, one behind the other: a comparison of rows is none. 'kept' are those that
-- something still needs: here and in unneeded.sql a condition for each, by an index.
SELECT t.id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.finished_at) AS finished_at, t.claim_no,
       (t.dependents = 1 OR EXISTS (SELECT 1 FROM permitq_cooling k WHERE k.task = t.id)) AS kept
  FROM permitq_task t FORCE INDEX (permitq_task_finished)
 WHERE (t.finished_state = ? AND t.finished_at = TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00') AND t.id > ?)
    OR (t.finished_state = ? AND t.finished_at > TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')
        AND t.finished_at < TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'))
 ORDER BY t.finished_at, t.id LIMIT ?
