-- The core: semaphores, tasks, cooling permits, the attempt log, consumers.
--
-- Instants are timestamptz, stamped by the database's clock. Names compare byte by byte (COLLATE "C"): equal on every
-- database, and no index depends on the operating system's locale. Triggers that touch other tables run with their
-- owner's rights and name the schema, so that who enqueues or tunes needs no right on anything else.

-- One row: what this schema is, and the name of this installation (it prefixes every Idempotency-Key).
CREATE TABLE permitq_schema (
    version      integer NOT NULL,            -- this schema
    min_binary   integer NOT NULL,            -- the lowest schema version a binary must know to run on it
    installation text    NOT NULL
);

-- in_use = running tasks + cooling rows of this semaphore, at every commit. max_permits is the operator's.
-- Few rows, updated all the time: room on the page for new versions, and dead ones are cleared away soon.
CREATE TABLE permitq_semaphore (
    name        text COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
    max_permits integer NOT NULL CHECK (max_permits BETWEEN 0 AND 1000000),
    in_use      integer NOT NULL DEFAULT 0 CHECK (in_use >= 0)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Every value max_permits ever had, for the audit. Written by the trigger below, whoever changes the cap.
CREATE TABLE permitq_limit (
    semaphore   text COLLATE "C" NOT NULL,
    since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    max_permits integer NOT NULL
);
CREATE INDEX permitq_limit_since ON permitq_limit (semaphore, since);
CREATE FUNCTION permitq_limit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.permitq_limit (semaphore, max_permits) VALUES ($1, $2)', TG_TABLE_SCHEMA)
      USING NEW.name, NEW.max_permits;
    IF TG_OP = 'UPDATE' AND NEW.max_permits > OLD.max_permits THEN
        PERFORM pg_notify('permitq', '');     -- more may run now
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER permitq_limit_first AFTER INSERT ON permitq_semaphore
   FOR EACH ROW EXECUTE FUNCTION permitq_limit();
CREATE TRIGGER permitq_limit_change AFTER UPDATE OF max_permits ON permitq_semaphore
   FOR EACH ROW WHEN (NEW.max_permits <> OLD.max_permits) EXECUTE FUNCTION permitq_limit();

-- One row per process start. 'gone' is final: such an id never beats or claims again.
-- No index on lease_until: there are few rows, and so a beat touches no index.
CREATE TABLE permitq_consumer (
    id          text COLLATE "C" PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    name        text    NOT NULL,
    host        text    NOT NULL,
    pid         bigint  NOT NULL,
    version     text    NOT NULL,
    slots       integer NOT NULL,
    serves      text    NOT NULL CHECK (serves::json IS NOT NULL),   -- {"kind" or "*": "semaphore", ...}
    state       text    NOT NULL DEFAULT 'alive' CHECK (state IN ('alive', 'draining', 'gone')),
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- One row: one thing to be done. A running task is its permit.
CREATE TABLE permitq_task (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text COLLATE "C" NOT NULL CHECK (length(kind) BETWEEN 1 AND 100),
    semaphore    text COLLATE "C" NOT NULL DEFAULT 'default',
    biz_key      text COLLATE "C" UNIQUE CHECK (length(biz_key) BETWEEN 1 AND 255),
    payload      text    NOT NULL DEFAULT '{}' CHECK (payload::json IS NOT NULL AND octet_length(payload) <= 4194304),
    priority     integer NOT NULL DEFAULT 0,
    state        text COLLATE "C" NOT NULL DEFAULT 'pending'
                 CHECK (state IN ('blocked', 'scheduled', 'pending', 'running', 'succeeded', 'failed', 'cancelled')),
    run_at       timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (isfinite(run_at)),
    timeout      double precision CHECK (timeout > 0 AND timeout <= 604800),   -- seconds; at most the downstream's call_timeout
    max_attempts integer CHECK (max_attempts BETWEEN 1 AND 1000),
    on_abandon   text    CHECK (on_abandon IN ('retry', 'retry_after_cooling', 'fail')),
    attempts     integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    claim_no     bigint  NOT NULL DEFAULT 0 CHECK (claim_no >= 0),   -- the fencing token: grows at every claim
    waiting_for  integer NOT NULL DEFAULT 0 CHECK (waiting_for >= 0),
    consumer     text COLLATE "C",                             -- while it runs
    until        timestamptz,                                  -- while it runs: its call must be over downstream
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at   timestamptz,                                  -- the last claim
    finished_at  timestamptz,
    result       text,
    error        text,
    source       text    NOT NULL DEFAULT 'sql',
    CHECK ((state = 'running') = (consumer IS NOT NULL)),
    CHECK ((state = 'running') = (until IS NOT NULL)),
    CHECK (state <> 'running' OR started_at IS NOT NULL),
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CHECK (state <> 'blocked' OR waiting_for > 0)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);
-- The claim: one range per (semaphore, kind), in the order of the claim. Only due tasks are in it.
CREATE INDEX permitq_task_ready ON permitq_task (semaphore, kind, priority DESC, run_at, id) WHERE state = 'pending';
-- The ticker that promotes due tasks.
CREATE INDEX permitq_task_due ON permitq_task (run_at, id) WHERE state = 'scheduled';
-- Beat, reclaim and audit. Nothing that changes while a task runs may be indexed.
CREATE INDEX permitq_task_running ON permitq_task (consumer, id, claim_no, semaphore) WHERE state = 'running';

-- A plain INSERT is a supported way to enqueue; these two triggers make it right.
CREATE FUNCTION permitq_task_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state NOT IN ('pending', 'scheduled', 'blocked') THEN
        RAISE EXCEPTION 'permitq: a new task is pending, scheduled or blocked; leave out state'
        USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state = 'pending' AND NEW.run_at > clock_timestamp() THEN
        NEW.state := 'scheduled';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER permitq_task_check BEFORE INSERT ON permitq_task
   FOR EACH ROW EXECUTE FUNCTION permitq_task_check();
-- Once per statement. The wake-up is a hint to consumers that LISTEN; it is sent at COMMIT, and only where a task can
-- run now. (A permit that becomes free without a hand-over is to wake them too; that is the store's to say.)
CREATE FUNCTION permitq_task_came() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unknown text;
BEGIN
    EXECUTE format('SELECT min(n.semaphore) FROM came n
                     WHERE NOT EXISTS (SELECT 1 FROM %I.permitq_semaphore s WHERE s.name = n.semaphore)',
                   TG_TABLE_SCHEMA) INTO unknown;
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'permitq: no such semaphore; see SELECT name FROM permitq_semaphore'
        USING ERRCODE = 'foreign_key_violation', DETAIL = 'It is called ' || unknown || '.';
    END IF;
    IF EXISTS (SELECT 1 FROM came WHERE state <> 'blocked') THEN
        PERFORM pg_notify('permitq', '');     -- for later ones, too: whoever waits sets its timer
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER permitq_task_came AFTER INSERT ON permitq_task REFERENCING NEW TABLE AS came
   FOR EACH STATEMENT EXECUTE FUNCTION permitq_task_came();

-- One row per permit whose call was given up and may still run downstream.
CREATE TABLE permitq_cooling (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    semaphore text COLLATE "C" NOT NULL,
    task      bigint,                                          -- NULL where the auditor cannot tell (why = 'drift')
    claim_no  bigint,
    consumer  text COLLATE "C",
    since     timestamptz NOT NULL DEFAULT clock_timestamp(),
    until     timestamptz NOT NULL,
    why       text NOT NULL
              CHECK (why IN ('abandoned', 'timeout', 'connection', 'status', 'cancelled', 'shutdown', 'handler', 'drift')),
    UNIQUE (task, claim_no)
);
CREATE INDEX permitq_cooling_until ON permitq_cooling (semaphore, until);

-- One row per attempt, written when it ends by whoever ends it: the execution log.
CREATE TABLE permitq_attempt (
    task               bigint NOT NULL,
    claim_no           bigint NOT NULL,
    kind               text COLLATE "C" NOT NULL,
    semaphore          text COLLATE "C" NOT NULL,
    consumer           text COLLATE "C" NOT NULL,
    claimed_at         timestamptz NOT NULL,                   -- the permit was taken
    called_at          timestamptz,                            -- the call began; NULL where none did
    ended_at           timestamptz NOT NULL,
    permit_released_at timestamptz,                            -- NULL while the permit cools
    outcome            text   NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'abandoned', 'handed_back', 'cancelled')),
    status             integer,                                -- HTTP
    error              text,
    ended_by           text   NOT NULL,                        -- the consumer itself, or who took it away
    late_at            timestamptz,                            -- evidence, never state: what the downstream said
    late_status        integer,                                -- after the consumer had lost the claim
    late_outcome       text   CHECK (late_outcome IN ('succeeded', 'failed')),
    late_answer        text,
    PRIMARY KEY (task, claim_no)
);
CREATE INDEX permitq_attempt_claimed ON permitq_attempt (semaphore, claimed_at);

-- What people did: cancel, retry, repair.
CREATE TABLE permitq_action (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    who    text NOT NULL,
    what   text NOT NULL,
    task   bigint,
    detail text
);
CREATE INDEX permitq_action_task ON permitq_action (task, id);

-- Who holds what, since when: for people.
CREATE VIEW permitq_permit AS
SELECT t.semaphore, 'held' AS state, t.id AS task, t.claim_no, t.kind, t.consumer, c.host, c.pid,
       t.started_at AS since, t.until, NULL AS why
  FROM permitq_task t LEFT JOIN permitq_consumer c ON c.id = t.consumer
 WHERE t.state = 'running'
UNION ALL
SELECT k.semaphore, 'cooling', k.task, k.claim_no, t.kind, k.consumer, c.host, c.pid, k.since, k.until, k.why
  FROM permitq_cooling k
  LEFT JOIN permitq_task t ON t.id = k.task
  LEFT JOIN permitq_consumer c ON c.id = k.consumer;

-- The task table without payload and result; instants in UTC, whatever the session's time zone.
CREATE VIEW permitq_task_utc AS
SELECT id, kind, semaphore, biz_key, priority, state, attempts, max_attempts, claim_no, consumer, error,
       run_at AT TIME ZONE 'UTC' AS run_at, created_at AT TIME ZONE 'UTC' AS created_at,
       started_at AT TIME ZONE 'UTC' AS started_at, finished_at AT TIME ZONE 'UTC' AS finished_at
  FROM permitq_task;

INSERT INTO permitq_semaphore (name, max_permits) VALUES ('default', 4);
INSERT INTO permitq_schema VALUES (1, 1, replace(gen_random_uuid()::text, '-', ''));
