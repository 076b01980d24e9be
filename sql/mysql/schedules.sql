-- Has a scheduler anything to do, and when? One read: the clock, the next instant that is yet to come, and whether a
-- trigger is due, a run has ended that a fixed delay waits for, or something waits for a run to end.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', (SELECT min(next_fire_at) FROM permitq_trigger
         WHERE paused = 0 AND next_fire_at > UTC_TIMESTAMP(6))) AS next,
       EXISTS (SELECT 1 FROM permitq_trigger t JOIN permitq_job j ON j.name = t.job
                 WHERE t.paused = 0 AND t.next_fire_at <= UTC_TIMESTAMP(6)
                   AND NOT (j.overlap = 'queue'
                            AND EXISTS (SELECT 1 FROM permitq_task k WHERE k.live_job = j.name))) AS due,
       EXISTS (SELECT 1 FROM permitq_trigger t LEFT JOIN permitq_task k ON k.id = t.waits_for
                 WHERE t.paused = 0 AND t.waits_for IS NOT NULL AND (k.id IS NULL OR k.finished_at IS NOT NULL)) AS ended,
       EXISTS (SELECT 1 FROM permitq_trigger
                 WHERE paused = 0 AND (waits_for IS NOT NULL OR next_fire_at <= UTC_TIMESTAMP(6))) AS waiting,
       EXISTS (SELECT 1 FROM permitq_trigger) AS known
