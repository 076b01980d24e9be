-- The log learns when the permits of these attempts (a JSON list) became free.
UPDATE permitq_attempt SET permit_released_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
 WHERE (task, claim_no) IN (SELECT value ->> 'id', value ->> 'claim_no' FROM json_each($1))
   AND permit_released_at IS NULL
