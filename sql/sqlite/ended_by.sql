-- Who ended these attempts (a JSON list), where they have ended?
SELECT a.task, a.claim_no, a.ended_by
  FROM json_each($1) j
  JOIN permitq_attempt a ON a.task = (j.value ->> 'id') AND a.claim_no = (j.value ->> 'claim_no')
