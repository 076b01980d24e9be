-- Schedules: jobs, their triggers, and what became of each planned instant. Instants and names as in 0001; so is that this
-- file may be run again after it was cut short.

-- What is done. Each run is a task.
CREATE TABLE IF NOT EXISTS permitq_job (
    name          VARCHAR(100) NOT NULL PRIMARY KEY CHECK (char_length(name) > 0),
    kind          VARCHAR(100) NOT NULL CHECK (char_length(kind) > 0),
    semaphore     VARCHAR(100) NOT NULL DEFAULT 'default',
    payload       LONGTEXT     NOT NULL DEFAULT ('{}') CHECK (json_valid(payload) AND octet_length(payload) <= 4194304),
    priority      INT          NOT NULL DEFAULT 0,
    timeout       DOUBLE       NULL CHECK (timeout > 0 AND timeout <= 604800),   -- seconds
    max_attempts  INT          NULL CHECK (max_attempts BETWEEN 1 AND 1000),
    on_abandon    VARCHAR(20)  NULL CHECK (on_abandon IN ('retry', 'retry_after_cooling', 'fail')),
    key_template  VARCHAR(255) NOT NULL DEFAULT '{job}/{instant}' CHECK (char_length(key_template) > 0),
    misfire       VARCHAR(20)  NOT NULL DEFAULT 'fire_once' CHECK (misfire IN ('fire_once', 'skip', 'fire_all')),
    misfire_after DOUBLE       NOT NULL DEFAULT 60 CHECK (misfire_after BETWEEN 0 AND 31622400),   -- seconds
    misfire_max   INT          NOT NULL DEFAULT 100 CHECK (misfire_max BETWEEN 1 AND 1000),
    overlap       VARCHAR(10)  NOT NULL DEFAULT 'skip' CHECK (overlap IN ('skip', 'queue', 'allow')),
    last_task     BIGINT       NULL,                           -- its newest run
    created_at    DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- When it is done. next_fire_at is the next planned instant: it follows from the last one, never from when somebody looked.
CREATE TABLE IF NOT EXISTS permitq_trigger (
    id           BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job          VARCHAR(100) NOT NULL,
    kind         VARCHAR(20)  NOT NULL CHECK (kind IN ('cron', 'interval', 'fixed_delay', 'once')),
    expression   LONGTEXT     NULL,                            -- cron
    dialect      VARCHAR(10)  NULL CHECK (dialect IN ('unix', 'quartz')),
    zone         VARCHAR(100) NOT NULL DEFAULT 'UTC',
    every        DOUBLE       NULL CHECK (every > 0 AND every <= 31622400),   -- interval, fixed_delay: seconds
    start_at     DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    end_at       DATETIME(6)  NULL,
    paused       INT          NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_fire_at DATETIME(6)  NULL,                            -- NULL: over, or waits
    waits_for    BIGINT       NULL,                            -- fixed_delay: the task whose end it waits for
    created_at   DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CHECK ((kind = 'cron') = (expression IS NOT NULL AND dialect IS NOT NULL)),
    CHECK ((kind IN ('interval', 'fixed_delay')) = (every IS NOT NULL)),
    KEY permitq_trigger_due (paused, next_fire_at, id),
    KEY permitq_trigger_waits (waits_for),
    KEY permitq_trigger_job (job)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- What became of planned instants: one, or several in a row with one fate.
CREATE TABLE IF NOT EXISTS permitq_instant (
    id         BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job        VARCHAR(100) NOT NULL,
    trigger_id BIGINT       NULL,                              -- NULL: a manual run
    planned_at DATETIME(6)  NOT NULL,                          -- the first
    last_at    DATETIME(6)  NOT NULL,                          -- the last
    instants   INT          NOT NULL DEFAULT 1,                -- how many; 10000: so many or more
    fate       VARCHAR(10)  NOT NULL CHECK (fate IN ('fired', 'overlap', 'misfired', 'exists', 'paused')),
    task       BIGINT       NULL,                              -- its run, or the one that stood in its way
    at         DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    KEY permitq_instant_job (job, id),
    KEY permitq_instant_task (task)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- Which job a task is a run of, and, computed for the index alone, which runs are not over: tasks of no job never move in
-- it. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @permitq = IF((SELECT count(*) FROM information_schema.columns
                    WHERE table_schema = database() AND table_name = 'permitq_task' AND column_name = 'live_job') > 0,
'DO 0', '
ALTER TABLE permitq_task
    ADD COLUMN job VARCHAR(100) NULL,
    ADD COLUMN live_job VARCHAR(100) GENERATED ALWAYS AS (CASE WHEN finished_at IS NULL THEN job END) VIRTUAL,
    ADD KEY permitq_task_job (live_job)');
PREPARE permitq FROM @permitq;
EXECUTE permitq;
DEALLOCATE PREPARE permitq;

-- Jobs and their triggers, for people; the instants are readable as they are.
CREATE OR REPLACE VIEW permitq_schedule AS
SELECT j.name AS job, t.id AS trigger_id, t.kind, coalesce(t.expression, t.every) AS schedule, t.dialect, t.zone, t.paused,
       t.next_fire_at, t.waits_for, j.misfire, j.overlap, j.last_task
  FROM permitq_job j LEFT JOIN permitq_trigger t ON t.job = j.name;
CREATE OR REPLACE VIEW permitq_instant_utc AS
SELECT id, job, trigger_id, planned_at, last_at, instants, fate, task, at FROM permitq_instant;

UPDATE permitq_schema SET version = 2 WHERE version = 1;
