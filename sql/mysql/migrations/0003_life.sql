-- The life of a task: what is paused, deadlines, ageing. Instants and names as in 0001; so is that this file may be run
-- again after it was cut short.

-- Whose tasks nobody claims: those of the whole fleet (name ''), of a kind, of a semaphore, or of a downstream. A downstream
-- that is down is paused until one probe call, at 'until' or later, finds it up again; a person's pause has no 'until'. The
-- table is empty most of the time, and small always.
CREATE TABLE IF NOT EXISTS permitq_pause (
    what     VARCHAR(10)  NOT NULL CHECK (what IN ('fleet', 'kind', 'semaphore', 'downstream')),
    name     VARCHAR(100) NOT NULL DEFAULT '',
    since    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    until    DATETIME(6)  NULL,                                -- a downstream: a probe may be sent from then on
    failures INT          NOT NULL DEFAULT 0,                  -- a downstream: how often it was found down in a row
    task     BIGINT       NULL,                                -- the probe: this task,
    claim_no BIGINT       NULL,                                -- in this attempt
    who      VARCHAR(200) NOT NULL DEFAULT 'sql',
    why      LONGTEXT     NULL,
    PRIMARY KEY (what, name),
    CHECK ((what = 'fleet') = (name = ''))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- Not worth starting from then on, and, computed for the index alone, the same while the task is not over; and how much of
-- the priority came with age: priority - aged is what was asked for.
SET @permitq = IF((SELECT count(*) FROM information_schema.columns
                    WHERE table_schema = database() AND table_name = 'permitq_task' AND column_name = 'live_expires_at') > 0,
'DO 0', '
ALTER TABLE permitq_task
    ADD COLUMN expires_at DATETIME(6) NULL,
    ADD COLUMN aged INT NOT NULL DEFAULT 0,
    ADD COLUMN live_expires_at DATETIME(6) GENERATED ALWAYS AS (CASE WHEN finished_at IS NULL THEN expires_at END) VIRTUAL,
    ADD KEY permitq_task_expires (live_expires_at)');
PREPARE permitq FROM @permitq;
EXECUTE permitq;
DEALLOCATE PREPARE permitq;

UPDATE permitq_schema SET version = 3 WHERE version = 2;
