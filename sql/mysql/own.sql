-- Which of these attempts (a JSON list) does this consumer still own? The rows are locked in the order of the list, whose
-- ids ascend: the one lock order. Through PRIMARY: a lock that starts at another index can deadlock with one that ends there.
SELECT t.id, t.claim_no
  FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', claim_no BIGINT PATH '$.claim_no')) j
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = j.id
 WHERE t.claim_no = j.claim_no AND t.consumer = ? AND t.state = 'running'
   FOR UPDATE
