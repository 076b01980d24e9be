-- Who ended these attempts (a JSON list), where they have ended?
SELECT a.task, a.claim_no, a.ended_by
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', claim_no BIGINT PATH '$.claim_no')) j
  STRAIGHT_JOIN permitq_attempt a FORCE INDEX (PRIMARY) ON a.task = j.id AND a.claim_no = j.claim_no
