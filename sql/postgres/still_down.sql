-- The probe, this very attempt, found the downstream still down: the next one comes after 2 s, 4 s, at most 30 s, or as long
-- as the downstream asked for.
UPDATE permitq_pause
   SET until = statement_timestamp()
               + greatest(least(30000000, 1000000::bigint << least(failures, 5)), $1::bigint) * interval '1 microsecond',
       failures = failures + 1, task = NULL, claim_no = NULL, who = $2, why = $3
 WHERE what = 'downstream' AND name = $4 AND task = $5 AND claim_no = $6
