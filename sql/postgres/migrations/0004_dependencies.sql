-- Dependencies: which tasks wait for the end of which others. Names as in 0001.

-- An edge: 'task' waits for 'parent'. It is open until the parent's end has been told to the task; a task that is blocked waits
-- for as many parents as it has open edges. Edges go with the task that waits.
CREATE TABLE permitq_dependency (
    task    bigint  NOT NULL REFERENCES permitq_task (id) ON DELETE CASCADE,
    parent  bigint  NOT NULL,
    any_end integer NOT NULL DEFAULT 0 CHECK (any_end IN (0, 1)),   -- 1: any end will do, not success alone
    open    integer NOT NULL DEFAULT 1 CHECK (open IN (0, 1)),
    PRIMARY KEY (task, parent),
    CHECK (task <> parent)
);
CREATE INDEX permitq_dependency_parent ON permitq_dependency (parent, open, task);

-- 1: edges to this task may be open, so whoever ends it looks. Set under its lock, by whoever adds an edge.
ALTER TABLE permitq_task ADD COLUMN dependents integer NOT NULL DEFAULT 0 CHECK (dependents IN (0, 1));
-- Ends that are not told to all dependents yet.
CREATE INDEX permitq_task_untold ON permitq_task (id) WHERE dependents = 1 AND finished_at IS NOT NULL;
-- The audit of what is blocked.
CREATE INDEX permitq_task_blocked ON permitq_task (id) WHERE state = 'blocked';

UPDATE permitq_schema SET version = 4;
