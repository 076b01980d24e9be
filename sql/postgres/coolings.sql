-- Permits that cool and whose calls somebody can be asked about, ids above $1, at most $2.
SELECT k.id, k.task, k.claim_no, k.consumer, t.kind, t.claim_no AS last
  FROM permitq_cooling k JOIN permitq_task t ON t.id = k.task
 WHERE k.id > $1 AND k.claim_no IS NOT NULL AND k.consumer IS NOT NULL
 ORDER BY k.id LIMIT $2
