-- Retention: finished tasks by state and age. Unfinished ones are not in the index.
CREATE INDEX permitq_task_finished ON permitq_task (state, finished_at, id) WHERE finished_at IS NOT NULL;

UPDATE permitq_schema SET version = 5;
