-- The probe, this very attempt, found the downstream up: everybody may claim its tasks again.
DELETE FROM permitq_pause WHERE what = 'downstream' AND name = $1 AND task = $2 AND claim_no = $3
