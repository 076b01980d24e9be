-- MySQL has no RETURNING: from here on the trigger permitq_task_came collects the ids that this session inserts.
SET @permitq_ids = ''
