-- The core: semaphores, tasks, cooling permits, the attempt log, consumers.
--
-- Tables are STRICT: a value of another type than its column's is refused, not kept. Instants are INTEGER microseconds since 1970 in UTC, stamped by the database's clock to the millisecond. The expression
--   CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
-- also works with the 3.40 command-line tool, where unixepoch('subsec') is NULL.

-- One row: what this schema is, and the name of this installation (it prefixes every Idempotency-Key).
CREATE TABLE permitq_schema (
    version      INTEGER NOT NULL,            -- this schema
    min_binary   INTEGER NOT NULL,            -- the lowest schema version a binary must know to run on it
    installation TEXT    NOT NULL
) STRICT;
INSERT INTO permitq_schema VALUES (1, 1, lower(hex(randomblob(16))));

-- in_use = running tasks + cooling rows of this semaphore, at every commit. max_permits is the operator's.
CREATE TABLE permitq_semaphore (
    name        TEXT    NOT NULL PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
    max_permits INTEGER NOT NULL CHECK (max_permits BETWEEN 0 AND 1000000),
    in_use      INTEGER NOT NULL DEFAULT 0 CHECK (in_use >= 0)
) WITHOUT ROWID, STRICT;

-- Every value max_permits ever had, for the audit. Written by the triggers below, whoever changes the cap.
CREATE TABLE permitq_limit (
    semaphore   TEXT    NOT NULL,
    since       INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    max_permits INTEGER NOT NULL
) STRICT;
CREATE INDEX permitq_limit_since ON permitq_limit (semaphore, since);
CREATE TRIGGER permitq_limit_first AFTER INSERT ON permitq_semaphore BEGIN
    INSERT INTO permitq_limit (semaphore, max_permits) VALUES (NEW.name, NEW.max_permits);
END;
CREATE TRIGGER permitq_limit_change AFTER UPDATE OF max_permits ON permitq_semaphore
WHEN NEW.max_permits <> OLD.max_permits BEGIN
    INSERT INTO permitq_limit (semaphore, max_permits) VALUES (NEW.name, NEW.max_permits);
END;
INSERT INTO permitq_semaphore (name, max_permits) VALUES ('default', 4);

-- One row per process start. 'gone' is final: such an id never beats or claims again.
CREATE TABLE permitq_consumer (
    id          TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    host        TEXT    NOT NULL,
    pid         INTEGER NOT NULL,
    version     TEXT    NOT NULL,
    slots       INTEGER NOT NULL,
    serves      TEXT    NOT NULL CHECK (json_valid(serves)),   -- {"kind" or "*": "semaphore", ...}
    state       TEXT    NOT NULL DEFAULT 'alive' CHECK (state IN ('alive', 'draining', 'gone')),
    started_at  INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    lease_until INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

-- One row: one thing to be done. A running task is its permit.
CREATE TABLE permitq_task (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    kind         TEXT    NOT NULL CHECK (length(kind) BETWEEN 1 AND 100),
    semaphore    TEXT    NOT NULL DEFAULT 'default',
    biz_key      TEXT    UNIQUE CHECK (length(biz_key) BETWEEN 1 AND 255),
    payload      TEXT    NOT NULL DEFAULT '{}' CHECK (json_valid(payload) AND length(CAST(payload AS BLOB)) <= 4194304),
    priority     INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -2147483648 AND 2147483647),
    state        TEXT    NOT NULL DEFAULT 'pending'
                 CHECK (state IN ('blocked', 'scheduled', 'pending', 'running', 'succeeded', 'failed', 'cancelled')),
    run_at       INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) CHECK (run_at BETWEEN -62135596800000000 AND 253402300799000000),
    timeout      REAL    CHECK (timeout > 0 AND timeout <= 604800),   -- seconds
    max_attempts INTEGER CHECK (max_attempts BETWEEN 1 AND 1000),
    on_abandon   TEXT    CHECK (on_abandon IN ('retry', 'retry_after_cooling', 'fail')),
    attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 2147483647),
    claim_no     INTEGER NOT NULL DEFAULT 0 CHECK (claim_no BETWEEN 0 AND 4611686018427387904),   -- the fencing token: grows at every claim
    waiting_for  INTEGER NOT NULL DEFAULT 0 CHECK (waiting_for >= 0),
    consumer     TEXT,                                         -- while it runs
    until        INTEGER,                                      -- while it runs: its call must be over downstream
    created_at   INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    started_at   INTEGER,                                      -- the last claim
    finished_at  INTEGER,
    result       TEXT,
    error        TEXT,
    source       TEXT    NOT NULL DEFAULT 'sql',
    CHECK ((state = 'running') = (consumer IS NOT NULL)),
    CHECK ((state = 'running') = (until IS NOT NULL)),
    CHECK (state <> 'running' OR started_at IS NOT NULL),
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CHECK (state <> 'blocked' OR waiting_for > 0)
) STRICT;
-- The claim: one range per (semaphore, kind), in the order of the claim. Only due tasks are in it.
CREATE INDEX permitq_task_ready ON permitq_task (semaphore, kind, priority DESC, run_at, id) WHERE state = 'pending';
-- The ticker that promotes due tasks.
CREATE INDEX permitq_task_due ON permitq_task (run_at, id) WHERE state = 'scheduled';
-- Beat, reclaim and audit.
CREATE INDEX permitq_task_running ON permitq_task (consumer, id, claim_no, semaphore) WHERE state = 'running';

-- A plain INSERT is a supported way to enqueue; these two triggers make it right.
CREATE TRIGGER permitq_task_check BEFORE INSERT ON permitq_task BEGIN
    SELECT RAISE(ABORT, 'permitq: a new task is pending, scheduled or blocked; leave out state')
     WHERE NEW.state NOT IN ('pending', 'scheduled', 'blocked');
    SELECT RAISE(ABORT, 'permitq: no such semaphore; see SELECT name FROM permitq_semaphore')
     WHERE NOT EXISTS (SELECT 1 FROM permitq_semaphore WHERE name = NEW.semaphore);
END;
CREATE TRIGGER permitq_task_later AFTER INSERT ON permitq_task
WHEN NEW.state = 'pending' AND NEW.run_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 BEGIN
    UPDATE permitq_task SET state = 'scheduled' WHERE id = NEW.id;
END;

-- One row per permit whose call was given up and may still run downstream.
CREATE TABLE permitq_cooling (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    semaphore TEXT    NOT NULL,
    task      INTEGER,                                         -- NULL where the auditor cannot tell (why = 'drift')
    claim_no  INTEGER,
    consumer  TEXT,
    since     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    until     INTEGER NOT NULL,
    why       TEXT    NOT NULL CHECK (why IN ('abandoned', 'timeout', 'connection', 'status', 'cancelled', 'shutdown', 'handler', 'drift')),
    UNIQUE (task, claim_no)
) STRICT;
CREATE INDEX permitq_cooling_until ON permitq_cooling (until);

-- One row per attempt, written when it ends by whoever ends it: the execution log.
CREATE TABLE permitq_attempt (
    task               INTEGER NOT NULL,
    claim_no           INTEGER NOT NULL,
    kind               TEXT    NOT NULL,
    semaphore          TEXT    NOT NULL,
    consumer           TEXT    NOT NULL,
    claimed_at         INTEGER NOT NULL,                       -- the permit was taken
    called_at          INTEGER,                                -- the call began; NULL where none did
    ended_at           INTEGER NOT NULL,
    permit_released_at INTEGER,                                -- NULL while the permit cools
    outcome            TEXT    NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'abandoned', 'handed_back', 'cancelled')),
    status             INTEGER,                                -- HTTP
    error              TEXT,
    ended_by           TEXT    NOT NULL,                       -- the consumer itself, or who took it away
    late_at            INTEGER,                                -- evidence, never state: what the downstream said
    late_status        INTEGER,                                -- after the consumer had lost the claim
    late_outcome       TEXT    CHECK (late_outcome IN ('succeeded', 'failed')),
    late_answer        TEXT,
    PRIMARY KEY (task, claim_no)
) WITHOUT ROWID, STRICT;
CREATE INDEX permitq_attempt_claimed ON permitq_attempt (semaphore, claimed_at);

-- What people did: cancel, retry, repair.
CREATE TABLE permitq_action (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    who    TEXT    NOT NULL,
    what   TEXT    NOT NULL,
    task   INTEGER,
    detail TEXT
) STRICT;
CREATE INDEX permitq_action_task ON permitq_action (task, id);

-- Who holds what, since when: for people.
CREATE VIEW permitq_permit AS
SELECT t.semaphore, 'held' AS state, t.id AS task, t.claim_no, t.kind, t.consumer, c.host, c.pid,
       strftime('%Y-%m-%d %H:%M:%f', t.started_at / 1e6, 'unixepoch') AS since,
       strftime('%Y-%m-%d %H:%M:%f', t.until / 1e6, 'unixepoch') AS until,
       NULL AS why
  FROM permitq_task t LEFT JOIN permitq_consumer c ON c.id = t.consumer
 WHERE t.state = 'running'
UNION ALL
SELECT k.semaphore, 'cooling', k.task, k.claim_no, t.kind, k.consumer, c.host, c.pid,
       strftime('%Y-%m-%d %H:%M:%f', k.since / 1e6, 'unixepoch'),
       strftime('%Y-%m-%d %H:%M:%f', k.until / 1e6, 'unixepoch'),
       k.why
  FROM permitq_cooling k
  LEFT JOIN permitq_task t ON t.id = k.task
  LEFT JOIN permitq_consumer c ON c.id = k.consumer;

-- The task table with instants that a person can read.
CREATE VIEW permitq_task_utc AS
SELECT id, kind, semaphore, biz_key, priority, state, attempts, max_attempts, claim_no, consumer, error,
       strftime('%Y-%m-%d %H:%M:%f', run_at / 1e6, 'unixepoch') AS run_at,
       strftime('%Y-%m-%d %H:%M:%f', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%d %H:%M:%f', started_at / 1e6, 'unixepoch') AS started_at,
       strftime('%Y-%m-%d %H:%M:%f', finished_at / 1e6, 'unixepoch') AS finished_at
  FROM permitq_task;
