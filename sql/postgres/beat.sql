-- Renews the lease of everything this consumer runs, in one row, and answers what the database thinks that is: a JSON list of
-- id and claim_no. 'gone' is final: no row changes then, and none is answered. One statement, one transaction: an idle
-- fleet does little else.
UPDATE permitq_consumer SET lease_until = clock_timestamp() + $1 * interval '1 microsecond'
 WHERE id = $2 AND state <> 'gone'
RETURNING (SELECT coalesce(json_agg(json_build_array(t.id, t.claim_no)), '[]')::text
             FROM permitq_task t WHERE t.state = 'running' AND t.consumer = $2)
