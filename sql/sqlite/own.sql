-- Which of these attempts (a JSON list) does this consumer still own? Ids ascending: the one lock order.
SELECT t.id, t.claim_no
  FROM json_each($1) j
  JOIN permitq_task t ON t.id = (j.value ->> 'id') AND t.claim_no = (j.value ->> 'claim_no')
 WHERE t.consumer = $2 AND t.state = 'running'
 ORDER BY t.id
