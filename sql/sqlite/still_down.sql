-- The probe, this very attempt, found the downstream still down: the next one comes after 2 s, 4 s, at most 30 s, or as long
-- as the downstream asked for.
UPDATE permitq_pause
   SET until = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + max(min(30000000, 1000000 << min(failures, 5)), $1),
       failures = failures + 1, task = NULL, claim_no = NULL, who = $2, why = $3
 WHERE what = 'downstream' AND name = $4 AND task = $5 AND claim_no = $6
