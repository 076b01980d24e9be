-- Who changes this row may claim one task of the downstream, the probe. 'until' moves on, so that nobody else does; and while
-- a probe runs, nobody does either. Where its process dies, the reclaimer ends it, and the next probe may go.
UPDATE permitq_pause SET until = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + 1000000
 WHERE what = 'downstream' AND name = $1 AND until <= CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
   AND NOT EXISTS (SELECT 1 FROM permitq_task t
                    WHERE t.id = permitq_pause.task AND t.claim_no = permitq_pause.claim_no AND t.state || '' = 'running')
