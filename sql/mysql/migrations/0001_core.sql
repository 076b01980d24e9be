-- The core: semaphores, tasks, cooling permits, the attempt log, consumers. For MySQL 8 and MariaDB.
--
-- DDL commits by itself here, so this file may be run again after it was cut short; the row in permitq_schema, which says
-- that it is done, comes last. Instants are DATETIME(6) in UTC, stamped by the database's clock. Names compare byte by
-- byte, trailing blanks included; that collation is called utf8mb4_nopad_bin on MariaDB and utf8mb4_0900_bin on MySQL, and
-- each reads only its own comment.

-- One row: what this schema is, and the name of this installation (it prefixes every Idempotency-Key).
CREATE TABLE IF NOT EXISTS permitq_schema (
    version      INT         NOT NULL PRIMARY KEY,   -- this schema
    min_binary   INT         NOT NULL,               -- the lowest schema version a binary must know to run on it
    installation VARCHAR(40) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- in_use = running tasks + cooling rows of this semaphore, at every commit. max_permits is the operator's.
CREATE TABLE IF NOT EXISTS permitq_semaphore (
    name        VARCHAR(100) NOT NULL PRIMARY KEY CHECK (char_length(name) > 0),
    max_permits INT NOT NULL CHECK (max_permits BETWEEN 0 AND 1000000),
    in_use      INT NOT NULL DEFAULT 0 CHECK (in_use >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- Every value max_permits ever had, for the audit. Written by the triggers below, whoever changes the cap.
CREATE TABLE IF NOT EXISTS permitq_limit (
    id          BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,   -- clusters tell rows apart by it
    semaphore   VARCHAR(100) NOT NULL,
    since       DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    max_permits INT          NOT NULL,
    KEY permitq_limit_since (semaphore, since)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
DROP TRIGGER IF EXISTS permitq_limit_first;
CREATE TRIGGER permitq_limit_first AFTER INSERT ON permitq_semaphore FOR EACH ROW
    INSERT INTO permitq_limit (semaphore, max_permits) VALUES (NEW.name, NEW.max_permits);
DROP TRIGGER IF EXISTS permitq_limit_change;
CREATE TRIGGER permitq_limit_change AFTER UPDATE ON permitq_semaphore FOR EACH ROW
BEGIN
    -- UTC_TIMESTAMP is when the statement began; it may have waited for claims under the old cap. SYSDATE is now.
    IF NEW.max_permits <> OLD.max_permits THEN
        INSERT INTO permitq_limit (semaphore, since, max_permits)
        VALUES (NEW.name,
                TIMESTAMPADD(MICROSECOND, TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), UTC_TIMESTAMP(6)),
                NEW.max_permits);
    END IF;
END;

-- One row per process start. 'gone' is final: such an id never beats or claims again.
CREATE TABLE IF NOT EXISTS permitq_consumer (
    id          VARCHAR(200) NOT NULL PRIMARY KEY CHECK (char_length(id) > 0),
    name        VARCHAR(255) NOT NULL,
    host        VARCHAR(255) NOT NULL,
    pid         BIGINT       NOT NULL,
    version     VARCHAR(100) NOT NULL,
    slots       INT          NOT NULL,
    serves      LONGTEXT     NOT NULL CHECK (json_valid(serves)),   -- {"kind" or "*": "semaphore", ...}
    state       VARCHAR(10)  NOT NULL DEFAULT 'alive' CHECK (state IN ('alive', 'draining', 'gone')),
    started_at  DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    lease_until DATETIME(6)  NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- One row: one thing to be done. A running task is its permit.
CREATE TABLE IF NOT EXISTS permitq_task (
    id           BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind         VARCHAR(100) NOT NULL CHECK (char_length(kind) > 0),
    semaphore    VARCHAR(100) NOT NULL DEFAULT 'default',
    biz_key      VARCHAR(255) NULL CHECK (char_length(biz_key) > 0),
    payload      LONGTEXT     NOT NULL DEFAULT ('{}') CHECK (json_valid(payload) AND octet_length(payload) <= 4194304),
    priority     INT          NOT NULL DEFAULT 0,
    state        VARCHAR(10)  NOT NULL DEFAULT 'pending'
                 CHECK (state IN ('blocked', 'scheduled', 'pending', 'running', 'succeeded', 'failed', 'cancelled')),
    run_at       DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    timeout      DOUBLE       NULL CHECK (timeout > 0 AND timeout <= 604800),   -- seconds; at most the downstream's call_timeout
    max_attempts INT          NULL CHECK (max_attempts BETWEEN 1 AND 1000),
    on_abandon   VARCHAR(20)  NULL CHECK (on_abandon IN ('retry', 'retry_after_cooling', 'fail')),
    attempts     INT          NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    claim_no     BIGINT       NOT NULL DEFAULT 0 CHECK (claim_no >= 0),   -- the fencing token: grows at every claim
    waiting_for  INT          NOT NULL DEFAULT 0 CHECK (waiting_for >= 0),
    consumer     VARCHAR(200) NULL,                            -- while it runs
    until        DATETIME(6)  NULL,                            -- while it runs: its call must be over downstream
    created_at   DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    started_at   DATETIME(6)  NULL,                            -- the last claim
    finished_at  DATETIME(6)  NULL,
    result       LONGTEXT     NULL,
    error        LONGTEXT     NULL,
    source       VARCHAR(255) NOT NULL DEFAULT 'sql',
    urgency      BIGINT GENERATED ALWAYS AS (-priority) STORED,   -- for the index only: with a DESC part in it, MariaDB has
                                                               -- no loose scan, and look.sql would read the whole backlog
    CHECK ((state = 'running') = (consumer IS NOT NULL)),
    CHECK ((state = 'running') = (until IS NOT NULL)),
    CHECK (state <> 'running' OR started_at IS NOT NULL),
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CHECK (state <> 'blocked' OR waiting_for > 0),
    UNIQUE KEY biz_key (biz_key),
    -- The claim: one range per (semaphore, kind), in the order of the claim; only due tasks are 'pending'. The state comes
    -- first, so that the look can step from kind to kind, and that running tasks are one range too (reclaim and audit).
    KEY permitq_task_ready (state, semaphore, kind, urgency, run_at, id),
    -- The ticker that promotes due tasks.
    KEY permitq_task_due (state, run_at, id),
    -- The beat: only a running task has a consumer.
    KEY permitq_task_running (consumer, id, claim_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- A plain INSERT is a supported way to enqueue; these two triggers make it right. What a trigger reads is share-locked, at
-- every isolation level: on permitq_semaphore each INSERT would wait behind each claim. Every semaphore has a first limit.
DROP TRIGGER IF EXISTS permitq_task_check;
CREATE TRIGGER permitq_task_check BEFORE INSERT ON permitq_task FOR EACH ROW
BEGIN
    IF NEW.state NOT IN ('pending', 'scheduled', 'blocked') THEN
        SIGNAL SQLSTATE '45000'
        SET MESSAGE_TEXT = 'permitq: a new task is pending, scheduled or blocked; leave out state';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM permitq_limit WHERE semaphore = NEW.semaphore) THEN
        SIGNAL SQLSTATE '45000'
        SET MESSAGE_TEXT = 'permitq: no such semaphore; see SELECT name FROM permitq_semaphore';
    END IF;
    IF NEW.state = 'pending' AND NEW.run_at > UTC_TIMESTAMP(6) THEN
        SET NEW.state = 'scheduled';
    END IF;
END;
-- RETURNING for those who ask: collect.sql sets the variable, enqueued.sql reads what really went in.
DROP TRIGGER IF EXISTS permitq_task_came;
CREATE TRIGGER permitq_task_came AFTER INSERT ON permitq_task FOR EACH ROW
BEGIN
    IF @permitq_ids IS NOT NULL THEN
        SET @permitq_ids = CONCAT(@permitq_ids, IF(@permitq_ids = '', '', ','), NEW.id);
    END IF;
END;

-- One row per permit whose call was given up and may still run downstream.
CREATE TABLE IF NOT EXISTS permitq_cooling (
    id        BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    semaphore VARCHAR(100) NOT NULL,
    task      BIGINT       NULL,                               -- NULL where the auditor cannot tell (why = 'drift')
    claim_no  BIGINT       NULL,
    consumer  VARCHAR(200) NULL,
    since     DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    until     DATETIME(6)  NOT NULL,
    why       VARCHAR(20)  NOT NULL
              CHECK (why IN ('abandoned', 'timeout', 'connection', 'status', 'cancelled', 'shutdown', 'handler', 'drift')),
    UNIQUE KEY task (task, claim_no),
    KEY permitq_cooling_until (semaphore, until, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- One row per attempt, written when it ends by whoever ends it: the execution log.
CREATE TABLE IF NOT EXISTS permitq_attempt (
    task               BIGINT       NOT NULL,
    claim_no           BIGINT       NOT NULL,
    kind               VARCHAR(100) NOT NULL,
    semaphore          VARCHAR(100) NOT NULL,
    consumer           VARCHAR(200) NOT NULL,
    claimed_at         DATETIME(6)  NOT NULL,                  -- the permit was taken
    called_at          DATETIME(6)  NULL,                      -- the call began; NULL where none did
    ended_at           DATETIME(6)  NOT NULL,
    permit_released_at DATETIME(6)  NULL,                      -- NULL while the permit cools
    outcome            VARCHAR(20)  NOT NULL
                       CHECK (outcome IN ('succeeded', 'failed', 'abandoned', 'handed_back', 'cancelled')),
    status             INT          NULL,                      -- HTTP
    error              LONGTEXT     NULL,
    ended_by           VARCHAR(255) NOT NULL,                  -- the consumer itself, or who took it away
    late_at            DATETIME(6)  NULL,                      -- evidence, never state: what the downstream said
    late_status        INT          NULL,                      -- after the consumer had lost the claim
    late_outcome       VARCHAR(20)  NULL CHECK (late_outcome IN ('succeeded', 'failed')),
    late_answer        LONGTEXT     NULL,
    PRIMARY KEY (task, claim_no),
    KEY permitq_attempt_claimed (semaphore, claimed_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- What people did: cancel, retry, repair.
CREATE TABLE IF NOT EXISTS permitq_action (
    id     BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at     DATETIME(6)  NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    who    VARCHAR(255) NOT NULL,
    what   VARCHAR(255) NOT NULL,
    task   BIGINT       NULL,
    detail LONGTEXT     NULL,
    KEY permitq_action_task (task, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;

-- Who holds what, since when: for people.
CREATE OR REPLACE VIEW permitq_permit AS
SELECT t.semaphore, 'held' AS state, t.id AS task, t.claim_no, t.kind, t.consumer, c.host, c.pid,
       t.started_at AS since, t.until, NULL AS why
  FROM permitq_task t LEFT JOIN permitq_consumer c ON c.id = t.consumer
 WHERE t.state = 'running'
UNION ALL
SELECT k.semaphore, 'cooling', k.task, k.claim_no, t.kind, k.consumer, c.host, c.pid, k.since, k.until, k.why
  FROM permitq_cooling k
  LEFT JOIN permitq_task t ON t.id = k.task
  LEFT JOIN permitq_consumer c ON c.id = k.consumer;

-- The task table without payload and result; the instants are readable as they are.
CREATE OR REPLACE VIEW permitq_task_utc AS
SELECT id, kind, semaphore, biz_key, priority, state, attempts, max_attempts, claim_no, consumer, error,
       run_at, created_at, started_at, finished_at
  FROM permitq_task;

INSERT INTO permitq_semaphore (name, max_permits)
SELECT 'default', 4 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM permitq_semaphore);
INSERT INTO permitq_schema
SELECT 1, 1, lower(hex(random_bytes(16))) FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM permitq_schema);
