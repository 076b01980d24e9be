-- Who changes this row may claim one task of the downstream, the probe. 'until' moves on, so that nobody else does; and while
-- a probe runs, nobody does either. Where its process dies, the reclaimer ends it, and the next probe may go.
UPDATE permitq_pause SET until = TIMESTAMPADD(SECOND, 1, UTC_TIMESTAMP(6))
 WHERE what = 'downstream' AND name = ? AND until <= UTC_TIMESTAMP(6)
   AND NOT EXISTS (SELECT 1 FROM permitq_task t FORCE INDEX (PRIMARY)
                    WHERE t.id = permitq_pause.task AND t.claim_no = permitq_pause.claim_no AND t.state = 'running')
