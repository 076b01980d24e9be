-- What retention looks at: tasks in a final state that finished before $6 (microseconds), oldest first, behind ($2, $3), at
-- most $7. 'kept' are those that something still needs: here and in unneeded.sql a condition for each, by an index.
SELECT t.id, (extract(epoch FROM t.finished_at) * 1000000)::bigint AS finished_at, t.claim_no,
       (t.dependents = 1 OR EXISTS (SELECT 1 FROM permitq_cooling k WHERE k.task = t.id))::int::bigint AS kept
  FROM permitq_task t
 WHERE t.finished_at IS NOT NULL AND t.state = $1
   AND (t.finished_at, t.id) > ('epoch'::timestamptz + $2 * interval '1 microsecond', $3)
   AND t.state = $4 AND t.finished_at >= 'epoch'::timestamptz + $5 * interval '1 microsecond'
   AND t.finished_at < 'epoch'::timestamptz + $6 * interval '1 microsecond'
 ORDER BY t.finished_at, t.id LIMIT $7
