-- The life of a task: what is paused, deadlines, ageing. Instants and names as in 0001.

-- Whose tasks nobody claims: those of the whole fleet (name ''), of a kind, of a semaphore, or of a downstream. A downstream
-- that is down is paused until one probe call, at 'until' or later, finds it up again; a person's pause has no 'until'. The
-- table is empty most of the time, and small always.
CREATE TABLE permitq_pause (
    what     text COLLATE "C" NOT NULL CHECK (what IN ('fleet', 'kind', 'semaphore', 'downstream')),
    name     text COLLATE "C" NOT NULL DEFAULT '' CHECK (length(name) <= 100 AND (what = 'fleet') = (name = '')),
    since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    until    timestamptz,                                      -- a downstream: a probe may be sent from then on
    failures integer NOT NULL DEFAULT 0,                       -- a downstream: how often it was found down in a row
    task     bigint,                                           -- the probe: this task,
    claim_no bigint,                                           -- in this attempt
    who      text NOT NULL DEFAULT 'sql',
    why      text,
    PRIMARY KEY (what, name)
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
-- What is resumed may be claimed at once.
CREATE FUNCTION permitq_resumed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('permitq', '');
    RETURN NULL;
END $$;
CREATE TRIGGER permitq_resumed AFTER DELETE ON permitq_pause
   FOR EACH STATEMENT EXECUTE FUNCTION permitq_resumed();

-- Not worth starting from then on; and how much of the priority came with age: priority - aged is what was asked for.
ALTER TABLE permitq_task ADD COLUMN expires_at timestamptz CHECK (isfinite(expires_at));
ALTER TABLE permitq_task ADD COLUMN aged integer NOT NULL DEFAULT 0;
CREATE INDEX permitq_task_expires ON permitq_task (expires_at, id) WHERE expires_at IS NOT NULL AND finished_at IS NULL;

UPDATE permitq_schema SET version = 3;
