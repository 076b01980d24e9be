-- Who changes this row may claim one task of the downstream, the probe. 'until' moves on, so that nobody else does; and while
-- a probe runs, nobody does either. Where its process dies, the reclaimer ends it, and the next probe may go.
UPDATE permitq_pause p SET until = statement_timestamp() + interval '1 second'
 WHERE p.what = 'downstream' AND p.name = $1 AND p.until <= statement_timestamp()
   AND NOT EXISTS (SELECT 1 FROM permitq_task t WHERE t.id = p.task AND t.claim_no = p.claim_no AND t.state || '' = 'running')
