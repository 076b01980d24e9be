-- The log learns when the permits of these attempts (a JSON list) became free.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', claim_no BIGINT PATH '$.claim_no')) j
  STRAIGHT_JOIN permitq_attempt a FORCE INDEX (PRIMARY) ON a.task = j.id AND a.claim_no = j.claim_no
   SET a.permit_released_at = UTC_TIMESTAMP(6)
 WHERE a.permit_released_at IS NULL
