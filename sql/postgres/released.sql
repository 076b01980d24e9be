-- The log learns when the permits of these attempts (a JSON list) became free. (Not "IS NULL" in the WHERE: a plan kept since
-- the table was empty would walk it for that.)
UPDATE permitq_attempt a SET permit_released_at = coalesce(a.permit_released_at, statement_timestamp())
  FROM json_to_recordset($1::json) AS j (id bigint, claim_no bigint)
 WHERE a.task = j.id AND a.claim_no = j.claim_no
