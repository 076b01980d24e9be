-- Renews the lease of everything this consumer runs, in one row, and answers what the database thinks that is: a JSON list of
-- id and claim_no. 'gone' is final: no row changes then, and none is answered. One statement, one transaction: an idle
-- fleet does little else.
UPDATE permitq_consumer SET lease_until = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + $1
 WHERE id = $2 AND state <> 'gone'
RETURNING (SELECT json_group_array(json_array(id, claim_no)) FROM permitq_task WHERE state = 'running' AND consumer = $2)
