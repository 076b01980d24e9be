-- The probe, this very attempt, found the downstream up: everybody may claim its tasks again.
DELETE FROM permitq_pause WHERE what = 'downstream' AND name = ? AND task = ? AND claim_no = ?
