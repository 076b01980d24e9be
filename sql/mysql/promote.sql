-- Scheduled tasks whose instant has come become pending, oldest first, at most ?. UPDATE itself cannot skip locked rows.
UPDATE (SELECT id FROM permitq_task FORCE INDEX (permitq_task_due)
         WHERE state = 'scheduled' AND run_at <= UTC_TIMESTAMP(6)
         ORDER BY run_at, id LIMIT ? FOR UPDATE SKIP LOCKED) due
  STRAIGHT_JOIN permitq_task t FORCE INDEX (PRIMARY) ON t.id = due.id
   SET t.state = 'pending'
 WHERE t.state = 'scheduled'
