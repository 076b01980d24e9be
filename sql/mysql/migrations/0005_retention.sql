-- Retention: finished tasks by state and age. The column is computed for the index alone, in which a task moves once, when
-- it finishes. As in 0002, this file may be run again after it was cut short.
SET @permitq = IF((SELECT count(*) FROM information_schema.columns
                    WHERE table_schema = database() AND table_name = 'permitq_task' AND column_name = 'finished_state') > 0,
'DO 0', '
ALTER TABLE permitq_task
    ADD COLUMN finished_state VARCHAR(10) GENERATED ALWAYS AS (CASE WHEN finished_at IS NOT NULL THEN state END) VIRTUAL,
    ADD KEY permitq_task_finished (finished_state, finished_at, id)');
PREPARE permitq FROM @permitq;
EXECUTE permitq;
DEALLOCATE PREPARE permitq;

UPDATE permitq_schema SET version = 5 WHERE version < 5;
