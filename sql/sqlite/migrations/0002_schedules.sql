-- Schedules: jobs, their triggers, and what became of each planned instant. Instants as in 0001.

-- What is done. Each run is a task.
CREATE TABLE permitq_job (
    name          TEXT    NOT NULL PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
    kind          TEXT    NOT NULL CHECK (length(kind) BETWEEN 1 AND 100),
    semaphore     TEXT    NOT NULL DEFAULT 'default',
    payload       TEXT    NOT NULL DEFAULT '{}' CHECK (json_valid(payload) AND length(CAST(payload AS BLOB)) <= 4194304),
    priority      INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -2147483648 AND 2147483647),
    timeout       REAL    CHECK (timeout > 0 AND timeout <= 604800),   -- seconds
    max_attempts  INTEGER CHECK (max_attempts BETWEEN 1 AND 1000),
    on_abandon    TEXT    CHECK (on_abandon IN ('retry', 'retry_after_cooling', 'fail')),
    key_template  TEXT    NOT NULL DEFAULT '{job}/{instant}' CHECK (length(key_template) BETWEEN 1 AND 255),
    misfire       TEXT    NOT NULL DEFAULT 'fire_once' CHECK (misfire IN ('fire_once', 'skip', 'fire_all')),
    misfire_after REAL    NOT NULL DEFAULT 60 CHECK (misfire_after BETWEEN 0 AND 31622400),   -- seconds
    misfire_max   INTEGER NOT NULL DEFAULT 100 CHECK (misfire_max BETWEEN 1 AND 1000),
    overlap       TEXT    NOT NULL DEFAULT 'skip' CHECK (overlap IN ('skip', 'queue', 'allow')),
    last_task     INTEGER,                                             -- its newest run
    created_at    INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
) WITHOUT ROWID, STRICT;

-- When it is done. next_fire_at is the next planned instant: it follows from the last one, never from when somebody looked.
CREATE TABLE permitq_trigger (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    job          TEXT    NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('cron', 'interval', 'fixed_delay', 'once')),
    expression   TEXT,                                                 -- cron
    dialect      TEXT    CHECK (dialect IN ('unix', 'quartz')),
    zone         TEXT    NOT NULL DEFAULT 'UTC',
    every        REAL    CHECK (every > 0 AND every <= 31622400),      -- interval, fixed_delay: seconds
    start_at     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) CHECK (start_at BETWEEN -62135596800000000 AND 253402300799000000),
    end_at       INTEGER CHECK (end_at BETWEEN -62135596800000000 AND 253402300799000000),
    paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_fire_at INTEGER CHECK (next_fire_at BETWEEN -62135596800000000 AND 253402300799000000),   -- NULL: over, or waits
    waits_for    INTEGER,                                              -- fixed_delay: the task whose end it waits for
    created_at   INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    CHECK ((kind = 'cron') = (expression IS NOT NULL AND dialect IS NOT NULL)),
    CHECK ((kind IN ('interval', 'fixed_delay')) = (every IS NOT NULL))
) STRICT;
CREATE INDEX permitq_trigger_due ON permitq_trigger (next_fire_at, id) WHERE paused = 0;
CREATE INDEX permitq_trigger_waits ON permitq_trigger (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX permitq_trigger_job ON permitq_trigger (job);

-- What became of planned instants: one, or several in a row with one fate.
CREATE TABLE permitq_instant (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        TEXT    NOT NULL,
    trigger_id INTEGER,                                                -- NULL: a manual run
    planned_at INTEGER NOT NULL,                                       -- the first
    last_at    INTEGER NOT NULL,                                       -- the last
    instants   INTEGER NOT NULL DEFAULT 1,                             -- how many; 10000: so many or more
    fate       TEXT    NOT NULL CHECK (fate IN ('fired', 'overlap', 'misfired', 'exists', 'paused')),
    task       INTEGER,                                                -- its run, or the one that stood in its way
    at         INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
) STRICT;
CREATE INDEX permitq_instant_job ON permitq_instant (job, id);
CREATE INDEX permitq_instant_task ON permitq_instant (task);

-- Which job a task is a run of, and which runs are not over. Tasks of no job are not in the index.
ALTER TABLE permitq_task ADD COLUMN job TEXT;
CREATE INDEX permitq_task_job ON permitq_task (job, id) WHERE job IS NOT NULL AND finished_at IS NULL;

-- Jobs and their triggers, for people.
CREATE VIEW permitq_schedule AS
SELECT j.name AS job, t.id AS trigger_id, t.kind, coalesce(t.expression, t.every) AS schedule, t.dialect, t.zone, t.paused,
       strftime('%Y-%m-%d %H:%M:%f', t.next_fire_at / 1e6, 'unixepoch') AS next_fire_at, t.waits_for,
       j.misfire, j.overlap, j.last_task
  FROM permitq_job j LEFT JOIN permitq_trigger t ON t.job = j.name;
CREATE VIEW permitq_instant_utc AS
SELECT id, job, trigger_id, strftime('%Y-%m-%d %H:%M:%f', planned_at / 1e6, 'unixepoch') AS planned_at,
       strftime('%Y-%m-%d %H:%M:%f', last_at / 1e6, 'unixepoch') AS last_at, instants, fate, task,
       strftime('%Y-%m-%d %H:%M:%f', at / 1e6, 'unixepoch') AS at
  FROM permitq_instant;

UPDATE permitq_schema SET version = 2;
