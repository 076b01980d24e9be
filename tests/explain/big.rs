//! The big database: filled on the server, with no trigger in the way.
//!
//! | ids from | are |
//! |---|---|
//! | 1 | a million finished, a fiftieth failed, every tenth with a key |
//! | [`RUNNING`] + 1 | 40 that run, ten of them under a consumer that is gone |
//! | [`SCHEDULED`] + 1 | 100,000 delayed, a third of them at the highest priority; the first [`DUE`] are due |
//! | [`PENDING`] | 100,000 pending, of eight kinds and two semaphores |

use permitq::store::Dialect;

use crate::support::Db;

pub(super) const RUNNING: i64 = 1_000_000;
const SCHEDULED: i64 = 1_000_100;
pub(super) const DUE: i64 = 20;
pub(super) const PENDING: i64 = 1_100_101;
/// Jobs, each with a trigger. The first has half of all finished tasks, one that is not over, and 100,000 instants.
pub(super) const JOBS: i64 = 1000;
const LAST: i64 = 1_200_100;
/// A page of a list.
pub(super) const LIMIT: i64 = 50;

pub(super) async fn fill(db: &Db) {
    match db.database.dialect() {
        Dialect::Sqlite => sqlite(db).await,
        Dialect::Postgres => postgres(db).await,
        Dialect::Mysql => mariadb(db).await,
    }
}

/// `n` is the id; `ago` and `ahead` are instants a while before and after now.
struct Words {
    numbers: fn(from: i64, to: i64) -> String,
    later: &'static str,
    ago: &'static str,
    ahead: &'static str,
    overriding: &'static str,
}

fn inserts(words: &Words) -> Vec<String> {
    let Words { numbers, later, ago, ahead, overriding } = words;
    let (kind, consumer) = ("concat('k', n % 8)", "concat('c', n % 4)");
    let number = numbers(1, LAST);
    vec![
        format!(
            "INSERT INTO permitq_task (id, kind, semaphore, biz_key, priority, state, run_at, claim_no, attempts, max_attempts,
                                       on_abandon, consumer, until, started_at, finished_at, job) {overriding}
             SELECT n, {kind}, CASE WHEN n % 4 = 0 AND NOT (n > {RUNNING} AND n <= {SCHEDULED}) THEN 'second' ELSE 'default' END,
                    CASE WHEN n % 10 = 0 THEN concat('key-', n) END,
                    CASE WHEN n > {SCHEDULED} AND n < {PENDING} AND n % 3 = 0 THEN 1000 ELSE n % 5 END,
                    CASE WHEN n >= {PENDING} THEN 'pending' WHEN n > {SCHEDULED} THEN 'scheduled'
                         WHEN n > {RUNNING} THEN 'running'
                         WHEN n % 50 = 0 THEN 'failed' WHEN n % 50 = 1 THEN 'cancelled' ELSE 'succeeded' END,
                    CASE WHEN n >= {PENDING} OR n <= {SCHEDULED} + {DUE} THEN {ago} ELSE {later} END,
                    CASE WHEN n <= {SCHEDULED} THEN 1 ELSE 0 END, CASE WHEN n <= {SCHEDULED} THEN 1 ELSE 0 END, 3, 'retry',
                    CASE WHEN n > {RUNNING} AND n <= {SCHEDULED} THEN {consumer} END,
                    CASE WHEN n > {RUNNING} AND n <= {SCHEDULED} THEN {ahead} END,
                    CASE WHEN n <= {SCHEDULED} THEN {ago} END, CASE WHEN n <= {RUNNING} THEN {ago} END,
                    CASE WHEN n <= {RUNNING} AND n % 2 = 0 OR n = {PENDING} THEN 'j1' END
               FROM {number} WHERE n <= {RUNNING} + 40 OR n > {SCHEDULED}"
        ),
        format!(
            "INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, ended_at,
                                          permit_released_at, outcome, ended_by)
             SELECT n, 1, {kind}, 'default', {consumer}, {ago}, {ago}, CASE WHEN n NOT BETWEEN 990001 AND 990020 THEN {ago} END,
                    'failed', {consumer}
               FROM {}",
            numbers(900_001, 1_000_000)
        ),
        format!(
            "INSERT INTO permitq_cooling (semaphore, task, claim_no, consumer, until, why)
             SELECT 'default', n, 1, 'c0', CASE WHEN n % 2 = 0 THEN {ago} ELSE {ahead} END, 'timeout' FROM {}",
            numbers(990_001, 990_020)
        ),
        format!(
            "INSERT INTO permitq_action (who, what, task) SELECT 'me', 'retry', n FROM {}",
            numbers(940_001, 960_000)
        ),
        // c0 to c2 and c5 alive, c4 past its lease, c3 and many more gone.
        format!(
            "INSERT INTO permitq_consumer (id, name, host, pid, version, slots, serves, state, lease_until)
             SELECT concat('c', n), 'c', 'h', 1, '0', 4, '{{}}', CASE WHEN n = 3 OR n > 5 THEN 'gone' ELSE 'alive' END,
                    CASE WHEN n = 4 OR n > 5 THEN {ago} ELSE {ahead} END FROM {}",
            numbers(0, 60)
        ),
        format!(
            "INSERT INTO permitq_job (name, kind, overlap) SELECT concat('j', n), 'k1', CASE WHEN n = 1 THEN 'queue' ELSE 'skip' END
               FROM {}",
            numbers(1, JOBS)
        ),
        // Twenty due, ten that wait for a run.
        format!(
            "INSERT INTO permitq_trigger (id, job, kind, every, next_fire_at, waits_for) {overriding}
             SELECT n, concat('j', n), CASE WHEN n BETWEEN 21 AND 30 THEN 'fixed_delay' ELSE 'interval' END, 60,
                    CASE WHEN n <= 20 THEN {ago} WHEN n > 30 THEN {later} END, CASE WHEN n BETWEEN 21 AND 30 THEN {PENDING} END
               FROM {}",
            numbers(1, JOBS)
        ),
        format!(
            "INSERT INTO permitq_instant (job, trigger_id, planned_at, last_at, fate, task)
             SELECT 'j1', 1, {ago}, {ago}, 'fired', n FROM {}",
            numbers(900_001, 1_000_000)
        ),
        "UPDATE permitq_semaphore SET max_permits = 100, in_use = 60".to_owned(),
        "INSERT INTO permitq_semaphore (name, max_permits) VALUES ('second', 2)".to_owned(),
    ]
}

async fn sqlite(db: &Db) {
    // The shell's clock expressions are long; a view of numbers is enough here.
    let words = Words {
        numbers: |from, to| {
            format!(
                "(WITH RECURSIVE s (n) AS (SELECT {from} UNION ALL SELECT n + 1 FROM s WHERE n < {to}) SELECT n FROM s)"
            )
        },
        ago: "unixepoch() * 1000000 - 3600000000",
        ahead: "unixepoch() * 1000000 + 3600000000",
        later: "unixepoch() * 1000000 + 3600000000 + n",
        overriding: "",
    };
    let triggers = "SELECT coalesce(group_concat(sql, ';'), '') FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'permitq_task'";
    let triggers = db.text(triggers).await;
    db.sql(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -500000; PRAGMA ignore_check_constraints = ON;
         DROP TRIGGER permitq_task_check; DROP TRIGGER permitq_task_later;
         DROP TRIGGER permitq_dependency_gone; DROP TRIGGER test_moves; BEGIN",
    )
    .await;
    for insert in inserts(&words) {
        db.sql(&insert).await;
    }
    db.sql(&format!("{triggers}; COMMIT; PRAGMA ignore_check_constraints = OFF")).await;
}

async fn postgres(db: &Db) {
    let words = Words {
        numbers: |from, to| format!("generate_series({from}, {to}) s (n)"),
        ago: "now() - interval '1 hour'",
        ahead: "now() + interval '1 hour'",
        later: "now() + interval '1 hour' + n * interval '1 microsecond'",
        overriding: "OVERRIDING SYSTEM VALUE",
    };
    // A role that is no superuser can put triggers aside only so, which makes kept plans anew.
    db.sql("ALTER TABLE permitq_task DISABLE TRIGGER USER").await;
    for insert in inserts(&words) {
        db.sql(&insert).await;
    }
    db.sql("ALTER TABLE permitq_task ENABLE TRIGGER USER").await;
    for table in ["task", "trigger"] {
        db.int(&format!("SELECT setval(pg_get_serial_sequence('permitq_{table}', 'id'), 2000000)")).await;
    }
}

async fn mariadb(db: &Db) {
    let words = Words {
        numbers: |from, to| format!("(SELECT seq AS n FROM seq_{from}_to_{to}) s"),
        ago: "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
        ahead: "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
        later: "UTC_TIMESTAMP(6) + INTERVAL 3600000000 + n MICROSECOND",
        overriding: "",
    };
    db.sql(
        "SET unique_checks = 0, foreign_key_checks = 0, check_constraint_checks = 0;
         DROP TRIGGER permitq_task_check; DROP TRIGGER permitq_task_came; DROP TRIGGER test_moves",
    )
    .await;
    // Indexes are made faster at the end than row by row.
    let keys =
        "SELECT group_concat(DISTINCT concat('DROP KEY ', index_name)) FROM information_schema.statistics
                 WHERE table_schema = database() AND table_name = 'permitq_task' AND index_name <> 'PRIMARY'";
    let drop = db.text(keys).await;
    let keys = "SELECT group_concat(k) FROM (
                  SELECT concat(IF(max(non_unique), 'ADD KEY ', 'ADD UNIQUE KEY '), index_name, ' (',
                                group_concat(column_name ORDER BY seq_in_index), ')') k
                    FROM information_schema.statistics
                   WHERE table_schema = database() AND table_name = 'permitq_task' AND index_name <> 'PRIMARY'
                   GROUP BY index_name) s";
    let add = db.text(keys).await;
    db.sql(&format!("ALTER TABLE permitq_task {drop}")).await;
    for insert in inserts(&words) {
        db.sql(&insert).await;
    }
    db.sql(&format!("ALTER TABLE permitq_task {add}")).await;
    // It may be run again, and makes what is missing: the triggers.
    db.sql(include_str!("../../sql/mysql/migrations/0001_core.sql")).await;
}
