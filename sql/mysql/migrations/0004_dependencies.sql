-- Dependencies: which tasks wait for the end of which others. Every step may be run again: DDL commits by itself.

-- An edge: 'task' waits for 'parent'. It is open until the parent's end has been told to the task; a task that is blocked waits
-- for as many parents as it has open edges. Edges go with the task that waits.
CREATE TABLE IF NOT EXISTS permitq_dependency (
    task    BIGINT NOT NULL,
    parent  BIGINT NOT NULL,
    any_end INT    NOT NULL DEFAULT 0 CHECK (any_end IN (0, 1)),       -- 1: any end will do, not success alone
    open    INT    NOT NULL DEFAULT 1 CHECK (open IN (0, 1)),
    PRIMARY KEY (task, parent),
    KEY permitq_dependency_parent (parent, open, task),
    CHECK (task <> parent),
    CONSTRAINT permitq_dependency_task FOREIGN KEY (task) REFERENCES permitq_task (id) ON DELETE CASCADE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- dependents is 1: edges to this task may be open, so whoever ends it looks. Set under its lock, by whoever adds an edge.
-- untold, for its index alone: ends that are not told to all dependents yet.
SET @permitq = IF((SELECT count(*) FROM information_schema.columns
                    WHERE table_schema = database() AND table_name = 'permitq_task' AND column_name = 'dependents') > 0,
'DO 0', '
ALTER TABLE permitq_task
    ADD COLUMN dependents INT NOT NULL DEFAULT 0,
    ADD COLUMN untold INT GENERATED ALWAYS AS (CASE WHEN finished_at IS NOT NULL AND dependents = 1 THEN 1 END) VIRTUAL,
    ADD KEY permitq_task_untold (untold, id)');
PREPARE permitq FROM @permitq;
EXECUTE permitq;
DEALLOCATE PREPARE permitq;

-- The INSERT of a task that waits names waiting_for and no state: who may only enqueue needs no right to write a state.
DROP TRIGGER IF EXISTS permitq_task_waits;
CREATE TRIGGER permitq_task_waits BEFORE INSERT ON permitq_task FOR EACH ROW
BEGIN
    IF NEW.waiting_for > 0 THEN
        SET NEW.state = 'blocked';
    END IF;
END;

UPDATE permitq_schema SET version = 4 WHERE version < 4;
