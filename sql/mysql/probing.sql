-- This attempt is the probe.
UPDATE permitq_pause SET task = ?, claim_no = ? WHERE what = 'downstream' AND name = ?
