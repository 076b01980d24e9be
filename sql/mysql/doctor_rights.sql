-- What a consumer does, for `permitq doctor`: each is planned by itself, which needs the right, and never executed.
EXPLAIN SELECT version FROM permitq_schema;
EXPLAIN SELECT max_permits FROM permitq_limit;
EXPLAIN DELETE FROM permitq_limit WHERE semaphore = 'x';
EXPLAIN SELECT max_permits FROM permitq_semaphore;
EXPLAIN UPDATE permitq_semaphore SET in_use = in_use + 1;
EXPLAIN SELECT id FROM permitq_task;
EXPLAIN INSERT INTO permitq_task (kind) VALUES ('x');
EXPLAIN UPDATE permitq_task SET claim_no = claim_no + 1;
EXPLAIN DELETE FROM permitq_task WHERE id = 0;
EXPLAIN SELECT id FROM permitq_cooling;
EXPLAIN INSERT INTO permitq_cooling (semaphore, until, why) VALUES ('x', '2000-01-01', 'drift');
EXPLAIN UPDATE permitq_cooling SET claim_no = claim_no + 1;
EXPLAIN DELETE FROM permitq_cooling WHERE id = 0;
EXPLAIN SELECT task FROM permitq_attempt;
EXPLAIN INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, ended_at, outcome, ended_by)
        VALUES (0, 0, 'x', 'x', 'x', '2000-01-01', '2000-01-01', 'failed', 'x');
EXPLAIN UPDATE permitq_attempt SET status = status + 1;
EXPLAIN DELETE FROM permitq_attempt WHERE task = 0;
EXPLAIN SELECT id FROM permitq_consumer;
EXPLAIN INSERT INTO permitq_consumer (id, name, host, pid, version, slots, serves, lease_until)
        VALUES ('x', 'x', 'x', 0, 'x', 1, '{}', '2000-01-01');
EXPLAIN UPDATE permitq_consumer SET slots = slots + 1;
EXPLAIN DELETE FROM permitq_consumer WHERE id = 'x';
EXPLAIN SELECT id FROM permitq_action;
EXPLAIN INSERT INTO permitq_action (who, what) VALUES ('x', 'x');
EXPLAIN DELETE FROM permitq_action WHERE id = 0;
EXPLAIN SELECT name FROM permitq_job;
EXPLAIN INSERT INTO permitq_job (name, kind) VALUES ('x', 'x');
EXPLAIN UPDATE permitq_job SET last_task = last_task + 1;
EXPLAIN DELETE FROM permitq_job WHERE name = 'x';
EXPLAIN SELECT id FROM permitq_trigger;
EXPLAIN INSERT INTO permitq_trigger (job, kind) VALUES ('x', 'once');
EXPLAIN UPDATE permitq_trigger SET waits_for = waits_for + 1;
EXPLAIN DELETE FROM permitq_trigger WHERE id = 0;
EXPLAIN SELECT id FROM permitq_instant;
EXPLAIN INSERT INTO permitq_instant (job, planned_at, last_at, fate) VALUES ('x', '2000-01-01', '2000-01-01', 'fired');
EXPLAIN UPDATE permitq_instant SET instants = instants + 1;
EXPLAIN DELETE FROM permitq_instant WHERE id = 0;
