-- The log learns when the permits of these attempts (a JSON list) became free.
UPDATE permitq_attempt a SET permit_released_at = statement_timestamp()
  FROM json_to_recordset($1::json) AS j (id bigint, claim_no bigint)
 WHERE a.task = j.id AND a.claim_no = j.claim_no AND a.permit_released_at IS NULL
