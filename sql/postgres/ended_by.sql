-- Who ended these attempts (a JSON list), where they have ended?
SELECT a.task, a.claim_no, a.ended_by
  FROM json_to_recordset($1::json) AS j (id bigint, claim_no bigint)
  JOIN permitq_attempt a ON a.task = j.id AND a.claim_no = j.claim_no
