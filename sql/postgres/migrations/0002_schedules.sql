-- Schedules: jobs, their triggers, and what became of each planned instant. Instants and names as in 0001.

-- What is done. Each run is a task.
CREATE TABLE permitq_job (
    name          text COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
    kind          text COLLATE "C" NOT NULL CHECK (length(kind) BETWEEN 1 AND 100),
    semaphore     text COLLATE "C" NOT NULL DEFAULT 'default',
    payload       text    NOT NULL DEFAULT '{}' CHECK (payload::json IS NOT NULL AND octet_length(payload) <= 4194304),
    priority      integer NOT NULL DEFAULT 0,
    timeout       double precision CHECK (timeout > 0 AND timeout <= 604800),   -- seconds
    max_attempts  integer CHECK (max_attempts BETWEEN 1 AND 1000),
    on_abandon    text    CHECK (on_abandon IN ('retry', 'retry_after_cooling', 'fail')),
    key_template  text    NOT NULL DEFAULT '{job}/{instant}' CHECK (length(key_template) BETWEEN 1 AND 255),
    misfire       text    NOT NULL DEFAULT 'fire_once' CHECK (misfire IN ('fire_once', 'skip', 'fire_all')),
    misfire_after double precision NOT NULL DEFAULT 60 CHECK (misfire_after BETWEEN 0 AND 31622400),   -- seconds
    misfire_max   integer NOT NULL DEFAULT 100 CHECK (misfire_max BETWEEN 1 AND 1000),
    overlap       text    NOT NULL DEFAULT 'skip' CHECK (overlap IN ('skip', 'queue', 'allow')),
    last_task     bigint,                                      -- its newest run
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- When it is done. next_fire_at is the next planned instant: it follows from the last one, never from when somebody looked.
CREATE TABLE permitq_trigger (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job          text COLLATE "C" NOT NULL,
    kind         text        NOT NULL CHECK (kind IN ('cron', 'interval', 'fixed_delay', 'once')),
    expression   text,                                         -- cron
    dialect      text        CHECK (dialect IN ('unix', 'quartz')),
    zone         text        NOT NULL DEFAULT 'UTC',
    every        double precision CHECK (every > 0 AND every <= 31622400),   -- interval, fixed_delay: seconds
    start_at     timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (isfinite(start_at)),
    end_at       timestamptz CHECK (isfinite(end_at)),
    paused       integer     NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    next_fire_at timestamptz CHECK (isfinite(next_fire_at)),   -- NULL: over, or waits
    waits_for    bigint,                                       -- fixed_delay: the task whose end it waits for
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((kind = 'cron') = (expression IS NOT NULL AND dialect IS NOT NULL)),
    CHECK ((kind IN ('interval', 'fixed_delay')) = (every IS NOT NULL))
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX permitq_trigger_due ON permitq_trigger (next_fire_at, id) WHERE paused = 0;
CREATE INDEX permitq_trigger_waits ON permitq_trigger (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX permitq_trigger_job ON permitq_trigger (job);
-- Schedulers look again when a schedule is added or changed; not when one of them moves a trigger on.
CREATE FUNCTION permitq_trigger_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('permitq_schedule', '');
    RETURN NULL;
END $$;
CREATE TRIGGER permitq_trigger_change
  AFTER INSERT OR DELETE OR UPDATE OF kind, expression, dialect, zone, every, start_at, end_at, paused ON permitq_trigger
   FOR EACH STATEMENT EXECUTE FUNCTION permitq_trigger_notify();

-- What became of planned instants: one, or several in a row with one fate.
CREATE TABLE permitq_instant (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job        text COLLATE "C" NOT NULL,
    trigger_id bigint,                                         -- NULL: a manual run
    planned_at timestamptz NOT NULL,                           -- the first
    last_at    timestamptz NOT NULL,                           -- the last
    instants   integer     NOT NULL DEFAULT 1,                 -- how many; 10000: so many or more
    fate       text        NOT NULL CHECK (fate IN ('fired', 'overlap', 'misfired', 'exists', 'paused')),
    task       bigint,                                         -- its run, or the one that stood in its way
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX permitq_instant_job ON permitq_instant (job, id);
CREATE INDEX permitq_instant_task ON permitq_instant (task);

-- Which job a task is a run of, and which runs are not over. Tasks of no job are not in the index.
ALTER TABLE permitq_task ADD COLUMN job text COLLATE "C";
CREATE INDEX permitq_task_job ON permitq_task (job, id) WHERE job IS NOT NULL AND finished_at IS NULL;

-- Jobs and their triggers, for people; instants in UTC, whatever the session's time zone.
CREATE VIEW permitq_schedule AS
SELECT j.name AS job, t.id AS trigger_id, t.kind, coalesce(t.expression, t.every::text) AS schedule, t.dialect, t.zone,
       t.paused, t.next_fire_at AT TIME ZONE 'UTC' AS next_fire_at, t.waits_for, j.misfire, j.overlap, j.last_task
  FROM permitq_job j LEFT JOIN permitq_trigger t ON t.job = j.name;
CREATE VIEW permitq_instant_utc AS
SELECT id, job, trigger_id, planned_at AT TIME ZONE 'UTC' AS planned_at, last_at AT TIME ZONE 'UTC' AS last_at, instants,
       fate, task, at AT TIME ZONE 'UTC' AS at
  FROM permitq_instant;

UPDATE permitq_schema SET version = 2;
