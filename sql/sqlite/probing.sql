-- This attempt is the probe.
UPDATE permitq_pause SET task = $1, claim_no = $2 WHERE what = 'downstream' AND name = $3
