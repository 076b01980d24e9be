-- The probe, this very attempt, found the downstream still down: the next one comes after 2 s, 4 s, at most 30 s, or as long
-- as the downstream asked for.
UPDATE permitq_pause
   SET until = TIMESTAMPADD(MICROSECOND, GREATEST(LEAST(30000000, 1000000 << LEAST(failures, 5)), ?), UTC_TIMESTAMP(6)),
       failures = failures + 1, task = NULL, claim_no = NULL, who = ?, why = ?
 WHERE what = 'downstream' AND name = ? AND task = ? AND claim_no = ?
