-- Which of these attempts (a JSON list) does this consumer still own? Locked in ascending id: the one lock order.
SELECT t.id, t.claim_no
  FROM json_to_recordset($1::json) AS j (id bigint, claim_no bigint)
  JOIN permitq_task t ON t.id = j.id AND t.claim_no = j.claim_no
 WHERE t.consumer = $2 AND t.state = 'running'
 ORDER BY t.id
   FOR UPDATE OF t
