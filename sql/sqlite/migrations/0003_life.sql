-- The life of a task: what is paused, deadlines, ageing. Instants as in 0001.

-- Whose tasks nobody claims: those of the whole fleet (name ''), of a kind, of a semaphore, or of a downstream. A downstream
-- that is down is paused until one probe call, at 'until' or later, finds it up again; a person's pause has no 'until'. The
-- table is empty most of the time, and small always.
CREATE TABLE permitq_pause (
    what     TEXT    NOT NULL CHECK (what IN ('fleet', 'kind', 'semaphore', 'downstream')),
    name     TEXT    NOT NULL DEFAULT '' CHECK (length(name) <= 100 AND (what = 'fleet') = (name = '')),
    since    INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
    until    INTEGER,                                                  -- a downstream: a probe may be sent from then on
    failures INTEGER NOT NULL DEFAULT 0,                               -- a downstream: how often it was found down in a row
    task     INTEGER,                                                  -- the probe: this task,
    claim_no INTEGER,                                                  -- in this attempt
    who      TEXT    NOT NULL DEFAULT 'sql',
    why      TEXT,
    PRIMARY KEY (what, name)
) WITHOUT ROWID, STRICT;

-- Not worth starting from then on; and how much of the priority came with age: priority - aged is what was asked for.
ALTER TABLE permitq_task ADD COLUMN expires_at INTEGER CHECK (expires_at BETWEEN -62135596800000000 AND 253402300799000000);
ALTER TABLE permitq_task ADD COLUMN aged INTEGER NOT NULL DEFAULT 0;
CREATE INDEX permitq_task_expires ON permitq_task (expires_at, id) WHERE expires_at IS NOT NULL AND finished_at IS NULL;

UPDATE permitq_schema SET version = 3;
