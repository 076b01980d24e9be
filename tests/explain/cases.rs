//! What is measured: statement, parameters in the order in which the store binds them, and the most rows it may read.

use permitq::model::Semaphore;
use permitq::store::Dialect;
use serde_json::{Value, json};

use super::big::{DUE, JOBS, LIMIT, PENDING, RUNNING};

/// A parameter.
#[derive(Clone, Debug)]
pub(super) enum Bind {
    Int(i64),
    Text(String),
    NoInt,
    NoText,
}

impl Bind {
    pub(super) fn sql_type(&self) -> &'static str {
        match self {
            Self::Int(_) | Self::NoInt => "bigint",
            Self::Text(_) | Self::NoText => "text",
        }
    }

    pub(super) fn literal(&self) -> String {
        match self {
            Self::Int(n) => n.to_string(),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Self::NoInt | Self::NoText => "NULL".to_owned(),
        }
    }
}

pub(super) struct Case {
    pub(super) statement: &'static str,
    /// With which parameters, where one statement is measured more than once.
    with: &'static str,
    pub(super) binds: Vec<Bind>,
    pub(super) most: u64,
}

/// These may read more than a bound, and why that is all right.
pub(super) const FREE: [(&str, &str); 4] = [
    (
        "retryable",
        "for a person who retries many: walks from the oldest task until it has enough; statement_timeout bounds it",
    ),
    ("states", "counts every task, for a person or a test that asks for just that"),
    (
        "list",
        "by another state than running, or by kind or semaphore: walks from the newest task until its page is full, so what \
         few tasks are may take the whole table; a person asks, and statement_timeout bounds it",
    ),
    ("sweep", "reads the log of a whole audit, row by row; `permitq audit` alone does"),
];

/// These read no table that grows.
pub(super) const UNREAD: [(&str, &str); 19] = [
    ("session", "settings"),
    ("limits", "settings"),
    ("server", "no table"),
    ("writable", "the server's state"),
    ("doctor_backend", "no table"),
    ("doctor_objects", "the catalogue"),
    ("doctor_rights", "the catalogue"),
    ("doctor_settings", "the server's settings"),
    ("doctor_status", "the server's state"),
    ("begin", "no table"),
    ("clock", "no table"),
    ("notify", "no table"),
    ("migrate_lock", "no table"),
    ("migrate_unlock", "no table"),
    ("installed", "the catalogue"),
    ("schema", "one row"),
    ("collect", "no table"),
    ("collected", "no table"),
    ("repair", "one row, by its name, as permits.sql"),
];

impl Case {
    pub(super) fn name(&self) -> String {
        if self.with.is_empty() {
            self.statement.to_owned()
        } else {
            format!("{} ({})", self.statement, self.with)
        }
    }
}

fn int(n: i64) -> Bind {
    Bind::Int(n)
}

fn word(text: impl Into<String>) -> Bind {
    Bind::Text(text.into())
}

fn list(value: &Value) -> Bind {
    Bind::Text(value.to_string())
}

const HOUR: i64 = 3_600_000_000;
/// The instant of the 1st of December 2026: what was over by then is over.
const NOW: i64 = 1_796_083_200_000_000;

/// Rows read: what is asked for, and a handful of others.
const FEW: u64 = 60;

pub(super) fn cases(dialect: Dialect) -> Vec<Case> {
    let mut cases = claim();
    cases.extend(finish());
    cases.extend(lease());
    cases.extend(upkeep());
    cases.extend(people());
    cases.extend(life());
    cases.extend(schedules());
    cases.extend(retention());
    cases.extend(dependencies());
    if dialect == Dialect::Postgres {
        let kinds = json!([{"kind": "k1", "hold": HOUR, "max_attempts": 3, "on_abandon": "retry", "downstream": "default"}]);
        let end = |n: i64| json!({"id": RUNNING + 4 * n, "claim_no": 1, "outcome": "succeeded", "state": "succeeded", "attempts": 1});
        let ended = json!((1..=4).map(end).collect::<Vec<_>>());
        let binds = vec![list(&ended), word("c0"), word("default"), list(&kinds), int(4)];
        cases.push(case("hand_over", binds, 80));
    }
    if dialect == Dialect::Mysql {
        cases.push(case("enqueued", vec![], FEW));
        cases.push(case("held", vec![word("c0")], FEW));
    }
    cases
}

fn case(statement: &'static str, binds: Vec<Bind>, most: u64) -> Case {
    Case { statement, with: "", binds, most }
}

fn with(statement: &'static str, with: &'static str, binds: Vec<Bind>, most: u64) -> Case {
    Case { statement, with, binds, most }
}

fn pick(kind: &str) -> Vec<Bind> {
    vec![word("default"), word(kind), word("default"), word(kind), word("default"), int(10)]
}

fn claim() -> Vec<Case> {
    let marks: Vec<_> = (0..4_i64)
        .map(|n| json!({"id": PENDING + n, "hold": HOUR, "max_attempts": 3, "on_abandon": "retry"}))
        .collect();
    let tasks: Vec<_> = (0..4_i64)
        .map(|n| {
            json!({"kind": "k1", "semaphore": "default", "biz_key": format!("new-{n}"), "payload": "{}", "priority": 0,
                   "at": null, "delay": 0, "timeout": null, "max_attempts": null, "on_abandon": null, "source": "api", "job": null, "expires_at": null, "expires_in": HOUR, "waiting_for": 0})
        })
        .collect();
    vec![
        // One step for each of eight kinds, and the consumers.
        case("look", vec![list(&json!(["default", "second", "missing"]))], 250),
        case("promote", vec![int(100)], 10 * DUE.unsigned_abs()),
        case("lock", vec![word("default")], FEW),
        case("pick", pick("k1"), FEW),
        with("pick", "nothing there", pick("none"), FEW),
        case("mark", vec![list(&json!(marks)), word("c0"), word("c0")], FEW),
        with("permits", "take", vec![int(1), word("default")], FEW),
        with("permits", "free", vec![int(-1), word("default")], FEW),
        case("enqueue", vec![list(&json!(tasks))], FEW),
        case("keyed", vec![list(&json!(["key-10", "key-999990", "key-7"]))], FEW),
    ]
}

/// Four attempts of c0.
fn attempts() -> Bind {
    list(&json!((1..=4_i64).map(|n| json!({"id": RUNNING + 4 * n, "claim_no": 1})).collect::<Vec<_>>()))
}

fn ends(why: Option<&str>) -> Bind {
    let end = |n: i64| {
        json!({"id": RUNNING + 4 * n, "claim_no": 1, "called_after": 1000, "outcome": "failed", "status": 500, "why": why,
               "state": "pending", "attempts": 1, "delay": HOUR, "after_cooling": 1, "result": null, "error": "no"})
    };
    list(&json!((1..=4).map(end).collect::<Vec<_>>()))
}

fn finish() -> Vec<Case> {
    vec![
        case("own", vec![attempts(), word("c0")], FEW),
        case("ended_by", vec![attempts()], FEW),
        case("log", vec![word("c0"), ends(None), word("c0")], FEW),
        case("cool", vec![ends(Some("timeout"))], FEW),
        case("settle", vec![ends(None), int(0)], FEW),
    ]
}

fn lease() -> Vec<Case> {
    let row = json!({"id": "new", "name": "new", "host": "h", "pid": 1, "version": "0", "slots": 4, "serves": "{}", "lease": HOUR});
    vec![
        case("register", vec![list(&row)], FEW),
        case("beat", vec![int(HOUR), word("c0")], FEW),
        case("running", vec![word("c0")], FEW),
        case("leave", vec![word("draining"), word("c0")], FEW),
        case("late", vec![int(200), word("failed"), word("{}"), int(950_001), int(1), word("c0")], FEW),
        case("own_cooling", vec![int(990_001), int(1), word("c0")], FEW),
    ]
}

fn upkeep() -> Vec<Case> {
    vec![
        // All that runs or cools, once for the counters and once for its consumer.
        case("check", vec![int(HOUR)], 400),
        case("expired", vec![], 250),
        case("fence", vec![word("c4"), int(1)], FEW),
        // All that runs, and for each its consumer.
        case("abandoned", vec![int(0), int(HOUR), int(100)], 250),
        case("cooled", vec![int(NOW), word("default"), int(100)], 100),
        case("coolings", vec![int(0), int(20)], 100),
        case(
            "released",
            vec![list(&json!([{"id": 990_001, "claim_no": 1}, {"id": 990_002, "claim_no": 1}]))],
            FEW,
        ),
        case("uncool", vec![list(&json!([1, 2, 3]))], FEW),
        case("counted", vec![word("default"), word("default")], 150),
        case("drift", vec![word("default"), int(HOUR), int(3)], FEW),
        case("longest", vec![word("default")], 150),
        case("retired", vec![int(24 * HOUR)], 300),
        // One step for each semaphore that tasks wait for, and all that runs or cools.
        case("impossible", vec![], 300),
    ]
}

fn life() -> Vec<Case> {
    let attempt = || [word("default"), int(1), int(1)];
    vec![
        case("pauses", vec![], FEW),
        case("pause", vec![word("kind"), word("k1"), word("me"), Bind::NoText], FEW),
        case("resume", vec![word("kind"), word("k1")], FEW),
        case("trip", vec![word("default"), int(0), word("c0"), word("no")], FEW),
        case("still_down", [vec![int(0), word("c0"), word("no")], attempt().to_vec()].concat(), FEW),
        case("probe", vec![word("default")], FEW),
        case("probing", vec![int(1), int(1), word("default")], FEW),
        case("found_up", attempt().to_vec(), FEW),
        case("lapsed", vec![int(100)], FEW),
        case("lapse", vec![list(&json!([PENDING, PENDING + 1]))], FEW),
        with("level", "the highest", vec![word("default"), word("k1"), Bind::NoInt], FEW),
        with("level", "the next", vec![word("default"), word("k1"), int(5)], FEW),
        case("age", vec![word("default"), word("k1"), int(0), int(HOUR)], 600),
    ]
}

fn dependencies() -> Vec<Case> {
    let edges = json!([{"task": PENDING, "parent": 2, "any_end": 0}]);
    let few = || list(&json!([PENDING, PENDING + 1]));
    vec![
        case("lock_tasks", vec![few()], FEW),
        case("expect", vec![few()], FEW),
        case("depend", vec![list(&edges)], FEW),
        case("waiters", vec![few(), int(100)], FEW),
        case("tell", vec![list(&json!([{"id": PENDING, "ended": 1, "error": null}]))], FEW),
        case("close", vec![list(&json!([{"task": PENDING, "parent": 2}]))], FEW),
        case("told", vec![few()], FEW),
        case("untold", vec![int(100)], FEW),
        // What is blocked, of which there is nothing here.
        case("strays", vec![int(100)], FEW),
        case("recount", vec![int(PENDING), int(PENDING)], FEW),
        case("family", vec![int(PENDING), int(100), int(PENDING), int(100)], FEW),
        case("parents", vec![few()], FEW),
        case("revivable", vec![few()], FEW),
        case("open_edges", vec![few()], FEW),
        case("block", vec![few()], FEW),
    ]
}

fn schedules() -> Vec<Case> {
    let all = JOBS.unsigned_abs();
    let job = json!({"name": "new", "kind": "k1", "semaphore": "default", "payload": "{}", "priority": 0, "timeout": null,
                     "max_attempts": null, "on_abandon": null, "key_template": "{instant}", "misfire": "skip",
                     "misfire_after": 60.0, "misfire_max": 100, "overlap": "skip"});
    let trigger = json!({"job": "j1", "kind": "interval", "expression": null, "dialect": null, "zone": "UTC", "every": 60.0,
                         "start_at": NOW, "end_at": null, "next_fire_at": NOW});
    vec![
        // The tables of schedules may be scanned, which are as small as there are schedules; never the tasks.
        case("schedules", vec![], 2 * all),
        case("due_triggers", vec![int(100)], 200),
        case("ended_runs", vec![int(100)], 2 * all),
        case("job_lock", vec![word("j1")], FEW),
        case("live_run", vec![word("j1")], FEW),
        case("advance", vec![int(NOW), int(1), int(NOW)], FEW),
        case("arm", vec![int(NOW), int(21), int(PENDING)], FEW),
        case("wait_for", vec![int(PENDING), int(21)], FEW),
        case("set_trigger", vec![int(1), int(NOW), int(1)], FEW),
        case("ran", vec![int(PENDING), word("j1")], FEW),
        case(
            "note_instant",
            vec![word("j1"), int(1), int(NOW), int(NOW), int(1), word("fired"), Bind::NoInt],
            FEW,
        ),
        case("overlapped", vec![int(NOW), int(950_000), int(1)], FEW),
        case("instants", vec![word("j1"), int(LIMIT)], 100),
        with("jobs", "one", vec![word("j1"), word("j1")], 2 * all),
        with("jobs", "all", vec![Bind::NoText, Bind::NoText], 4 * all),
        with("triggers", "of one job", vec![word("j1"), word("j1")], all),
        with("triggers", "all", vec![Bind::NoText, Bind::NoText], 3 * all),
        case("add_job", vec![list(&job)], FEW),
        case("add_trigger", vec![list(&trigger)], FEW),
        case("remove_job", vec![word("j999")], FEW),
        case("remove_trigger", vec![int(999)], FEW),
    ]
}

/// In big.rs all finished tasks finished at one instant, an hour ago: what is behind it is found by its id.
fn retention() -> Vec<Case> {
    let finished = |state: &str, after: i64, id: i64| {
        vec![word(state), int(after), int(id), word(state), int(after), int(NOW * 2), int(200)]
    };
    let ids = || list(&json!((900_001..=900_020).collect::<Vec<_>>()));
    vec![
        // Each of two hundred, and whether its permit cools.
        with("finished", "from the first on", finished("succeeded", 0, 0), 700),
        with(
            "finished",
            "nothing so old",
            vec![word("failed"), int(0), int(0), word("failed"), int(0), int(1), int(200)],
            FEW,
        ),
        case("unneeded", vec![ids(), int(NOW * 2)], 120),
        case("forget_attempts", vec![ids()], 100),
        case("forget_actions_of", vec![list(&json!((950_001..=950_020).collect::<Vec<_>>()))], 100),
        case("forget_tasks", vec![ids()], 100),
        case("forget_instants", vec![list(&json!([1, 2, 3]))], FEW),
        case("forget_actions", vec![list(&json!([1, 2, 3]))], FEW),
        case("forget_limits", vec![word("default"), word("default"), int(NOW * 2), int(100)], FEW),
        // To its newest thousand, and a page with the runs.
        case("surplus", vec![word("j1"), int(0), word("j1"), int(1000), int(200)], 1700),
        case("old_instants", vec![int(NOW * 2), int(0), int(200)], 700),
        case("old_actions", vec![int(NOW * 2), int(0), int(200)], 700),
    ]
}

fn filter(state: Option<&str>, kind: Option<&str>, key: Option<&str>, below: i64) -> Vec<Bind> {
    let twice = |value: Option<&str>| {
        let bind = value.map_or(Bind::NoText, word);
        [bind.clone(), bind]
    };
    let mut binds = Vec::new();
    for value in [state, kind, None, key] {
        binds.extend(twice(value));
    }
    binds.extend([int(below), int(LIMIT)]);
    binds
}

/// Of those of kind k1, all of one priority are due at one instant.
fn ahead(id: i64) -> Vec<Bind> {
    let range = || vec![word("default"), word("k1"), int(if id == i64::MAX { -1 } else { 5 })];
    let due = || int(NOW * 2);
    let parts =
        [range(), vec![int(1001)], range(), vec![due(), int(1001)], range(), vec![due(), int(id), int(1001)]];
    parts.concat()
}

fn people() -> Vec<Case> {
    vec![
        // The waiting are counted so far, of two semaphores.
        case("semaphores", vec![int(Semaphore::WAITING_MAX)], 3 * Semaphore::WAITING_MAX.unsigned_abs()),
        case("holders", vec![], 400),
        case("consumers", vec![], 250),
        case("set_max", vec![int(7), word("default")], FEW),
        case("add_semaphore", vec![word("third"), int(3)], FEW),
        case("task", vec![int(500_000)], FEW),
        with("list", "all", filter(None, None, None, i64::MAX), 100),
        with("list", "a later page", filter(None, None, None, 500_000), 100),
        with("list", "by key", filter(None, None, Some("key-500000"), i64::MAX), FEW),
        with("list", "running", filter(Some("running"), None, None, i64::MAX), 150),
        with("list", "of a common kind", filter(None, Some("k3"), None, i64::MAX), 500),
        case("attempts", vec![int(950_000)], FEW),
        case("actions", vec![int(950_000)], FEW),
        case("recent", vec![word("default"), int(200)], 250),
        with("ahead", "the first of very many", ahead(PENDING + 1), 200),
        with("ahead", "the last of very many", ahead(i64::MAX), 3500),
        case("fired_by", vec![int(950_000)], FEW),
        case("act", vec![word("me"), word("cancel"), Bind::NoInt, Bind::NoText], FEW),
        case("standing", vec![int(500_000)], FEW),
        case("cools_until", vec![int(990_001)], FEW),
        case("cancel", vec![word("no"), int(PENDING)], FEW),
        case("revive", vec![Bind::NoInt, Bind::NoInt, int(50)], FEW),
        case("evidence", vec![int(950_000)], FEW),
        case("accept", vec![word("{}"), int(50)], FEW),
    ]
}
