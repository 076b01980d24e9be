//! Putting tasks in: all or none, idempotent by business key, also from any SQL client.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use permitq::model::{NewTask, OnAbandon, RunAt, State};
use permitq::store::{Enqueued, Error};

use crate::support::Db;

contract![
    a_business_key_is_enqueued_once_within_and_across_batches,
    answers_come_in_the_order_of_the_tasks,
    keys_are_compared_exactly,
    a_future_task_is_scheduled_and_promoted_oldest_first,
    every_field_is_stored,
    a_plain_insert_is_a_whole_task,
    bad_tasks_are_refused_and_nothing_is_written,
    bad_plain_inserts_are_refused,
    emoji_and_a_megabyte_come_back_as_they_went_in,
    a_thousand_tasks_go_in_one_call,
    thirteen_enqueues_get_thirteen_verdicts,
    a_payload_is_whole_or_refused,
];

async fn a_business_key_is_enqueued_once_within_and_across_batches(db: Db) {
    let mut store = db.store();
    let keyed = |key: &str| NewTask::new("call", "1").key(key);
    let first = store.enqueue(&[keyed("a"), keyed("b"), keyed("a")]).await.unwrap();
    assert_eq!(first.iter().map(|e| e.created).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(first[0].id, first[2].id);
    let second = store.enqueue(&[keyed("c"), NewTask::new("other", "2").key("a")]).await.unwrap();
    assert_eq!(second[1], Enqueued { id: first[0].id, created: false });
    assert!(second[0].created);
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 3);
    let task = db.task(first[0].id).await;
    assert_eq!((&*task.kind, task.payload.as_deref()), ("call", Some("1")), "the first one stays");
    assert_eq!(store.enqueue(&[]).await.unwrap(), []);
}

async fn answers_come_in_the_order_of_the_tasks(db: Db) {
    let mut store = db.store();
    store.enqueue(&[NewTask::new("old", "{}").key("k7")]).await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let task = NewTask { priority: 20 - n, ..NewTask::new(format!("kind-{n}"), "{}") };
            if n % 3 == 1 { task.key(format!("k{n}")) } else { task }
        })
        .collect();
    let answers = store.enqueue(&tasks).await.unwrap();
    for (n, answer) in answers.iter().enumerate() {
        let kind = if n == 7 { "old".to_owned() } else { format!("kind-{n}") };
        assert_eq!((db.task(answer.id).await.kind, answer.created), (kind, n != 7));
    }
}

async fn keys_are_compared_exactly(db: Db) {
    let keys = [
        "key",
        "KEY",
        "kéy",
        "ke\u{301}y",
        "key ",
        " key",
        "ｋｅｙ",
        "straße",
        "strasse",
        "🦀",
        "💥",
        "007",
        "7",
        "%",
        "_",
    ];
    let tasks: Vec<_> = keys.iter().map(|key| NewTask::new("call", "{}").key(*key)).collect();
    let first = db.store().enqueue(&tasks).await.unwrap();
    assert!(first.iter().all(|answer| answer.created), "{first:?}");
    let again = db.store().enqueue(&tasks).await.unwrap();
    for ((first, again), key) in first.iter().zip(&again).zip(keys) {
        assert_eq!(*again, Enqueued { id: first.id, created: false });
        assert_eq!(db.task(again.id).await.biz_key.as_deref(), Some(key));
    }
}

async fn a_future_task_is_scheduled_and_promoted_oldest_first(db: Db) {
    let mut store = db.store();
    let later =
        |hours| NewTask { run_at: RunAt::In(Duration::from_hours(hours)), ..NewTask::new("call", "{}") };
    let past = NewTask { run_at: RunAt::At(Timestamp::UNIX_EPOCH), ..NewTask::new("call", "{}") };
    let ids = crate::support::ids(&store.enqueue(&[later(3), later(2), later(1), past]).await.unwrap());
    let mut states = Vec::new();
    for id in &ids {
        states.push(db.task(*id).await.state);
    }
    assert_eq!(states, [State::Scheduled, State::Scheduled, State::Scheduled, State::Pending]);
    assert_eq!(db.task(ids[3]).await.run_at, Timestamp::UNIX_EPOCH);
    assert_eq!(store.promote(10).await.unwrap(), 0);
    db.age("permitq_task", "run_at", Duration::from_mins(150), "state = 'scheduled'").await;
    for promoted in [ids[2], ids[1]] {
        assert_eq!(db.task(promoted).await.state, State::Scheduled);
        assert_eq!(store.promote(1).await.unwrap(), 1);
        assert_eq!(db.task(promoted).await.state, State::Pending);
    }
    assert_eq!(store.promote(1).await.unwrap(), 0);
    db.sql("DELETE FROM permitq_task WHERE state = 'scheduled'").await;
    assert_eq!(store.look(&["default".into()]).await.unwrap().next_due, None);
}

async fn every_field_is_stored(db: Db) {
    let at: Timestamp = "2020-02-29T23:59:59.123Z".parse().unwrap();
    let task = NewTask {
        priority: -7,
        run_at: RunAt::At(at),
        timeout: Some(Duration::from_millis(2500)),
        max_attempts: Some(7),
        on_abandon: Some(OnAbandon::Fail),
        source: "task:12".into(),
        ..NewTask::new("call", "[1]").key("key")
    };
    let stored = db.task(db.enqueue_one(task).await).await;
    assert_eq!((stored.priority, stored.run_at, stored.state), (-7, at, State::Pending));
    assert_eq!((stored.timeout, stored.max_attempts), (Some(Duration::from_millis(2500)), Some(7)));
    assert_eq!((stored.on_abandon, &*stored.source), (Some(OnAbandon::Fail), "task:12"));
    assert_eq!((stored.claim_no, stored.attempts, &*stored.semaphore), (0, 0, "default"));
    let open = db.task(db.enqueue_one(NewTask::new("call", "")).await).await;
    assert_eq!((open.payload.as_deref(), open.max_attempts, open.on_abandon), (Some("{}"), None, None));
    assert_eq!((open.timeout, open.state, open.source.as_str()), (None, State::Pending, "api"));
}

async fn a_plain_insert_is_a_whole_task(db: Db) {
    let due = "INSERT INTO permitq_task (kind, biz_key, payload) VALUES ('call', 'by hand', '{\"n\": 1}')";
    db.sql(due).await;
    assert!(db.try_sql(due).await.is_err(), "the key is unique");
    db.sql("INSERT INTO permitq_task (kind) VALUES ('call')").await;
    let mut a = db.consumer("a").await;
    let claims = a.claim(4).await;
    assert_eq!(claims.len(), 2);
    assert_eq!((claims[0].biz_key.as_deref(), &*claims[0].payload), (Some("by hand"), "{\"n\": 1}"));
    assert_eq!((&*claims[1].payload, claims[1].standing.max_attempts), ("{}", 3));
    let task = db.task(claims[1].attempt.task).await;
    assert_eq!((&*task.source, task.priority), ("sql", 0));
    assert!(task.created_at.duration_since(task.run_at).abs().as_secs() == 0, "{task:?}");
    // A future run_at makes it a scheduled one.
    let far = NewTask { run_at: RunAt::In(Duration::from_hours(9)), ..NewTask::new("call", "{}") };
    let far = db.enqueue_one(far).await;
    db.sql(&format!(
        "INSERT INTO permitq_task (kind, biz_key, run_at) SELECT 'call', 'later', run_at FROM permitq_task WHERE id = {far}"
    ))
    .await;
    let state = db.text("SELECT state FROM permitq_task WHERE biz_key = 'later'").await;
    assert_eq!(state, "scheduled");
}

async fn bad_tasks_are_refused_and_nothing_is_written(db: Db) {
    let good = || NewTask::new("call", "{}");
    let bad = [
        NewTask { semaphore: Some("missing".into()), ..good() },
        NewTask::new("call", "{"),
        NewTask::new("call", "{'a': 1}"),
        NewTask::new("", "{}"),
        good().key(""),
        good().key("k".repeat(256)),
        NewTask::new("k".repeat(101), "{}"),
        NewTask { max_attempts: Some(0), ..good() },
        NewTask { max_attempts: Some(1001), ..good() },
        NewTask { timeout: Some(Duration::ZERO), ..good() },
    ];
    let mut store = db.store();
    for bad in bad {
        let refused = store.enqueue(&[good(), bad.clone(), good()]).await;
        assert!(matches!(refused, Err(Error::Refused { .. })), "{bad:?}: {refused:?}");
        assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 0);
    }
    let missing = NewTask { semaphore: Some("missing".into()), ..good() };
    let error = store.enqueue(&[missing]).await.unwrap_err().to_string();
    assert!(error.contains("no such semaphore"), "{error}");
}

async fn bad_plain_inserts_are_refused(db: Db) {
    let table = [
        ("kind, semaphore", "'call', 'missing'"),
        ("kind, payload", "'call', '{'"),
        ("kind, state", "'call', 'succeeded'"),
        ("kind, state, consumer", "'call', 'running', 'a'"),
        ("kind, state", "'call', 'done'"),
        ("kind", "''"),
        ("payload", "'{}'"),
    ];
    for (columns, values) in table {
        let insert = format!("INSERT INTO permitq_task ({columns}) VALUES ({values})");
        assert!(db.try_sql(&insert).await.is_err(), "{insert}");
    }
    // Running with every column that a running task has.
    let running = "INSERT INTO permitq_task (kind, state, consumer, until, started_at)
                   SELECT 'call', 'running', 'a', since, since FROM permitq_limit";
    assert!(db.try_sql(running).await.is_err());
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 0);
}

async fn emoji_and_a_megabyte_come_back_as_they_went_in(db: Db) {
    let payloads = [
        r#"{"text": "👩‍👩‍👧 日本 \u00e9 \\ \" \n 🦀"}"#.to_owned(),
        format!("\"{}\"", "🦀x".repeat(1 << 18)),
        " [ 1 , 2.50 , null ] ".to_owned(),
        "\"a string\"".to_owned(),
    ];
    let mut a = db.consumer("a").await;
    for payload in &payloads {
        let id = db.enqueue_one(NewTask::new("call", payload.clone()).key("🔑".repeat(255))).await;
        assert!(db.task(id).await.payload.as_ref() == Some(payload));
        assert!(a.claim_one().await.payload == *payload);
        db.sql("DELETE FROM permitq_task").await;
        db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    }
}

async fn a_thousand_tasks_go_in_one_call(db: Db) {
    let tasks: Vec<_> =
        (0..1000).map(|n| NewTask::new("call", n.to_string()).key(format!("key-{n}"))).collect();
    let answers = db.store().enqueue(&tasks).await.unwrap();
    assert!(answers.iter().all(|answer| answer.created));
    for n in [0, 499, 999] {
        assert_eq!(db.task(answers[n].id).await.payload, Some(n.to_string()));
    }
    let again = db.store().enqueue(&tasks).await.unwrap();
    assert!(again.iter().zip(&answers).all(|(again, first)| again.id == first.id && !again.created));
}

/// Twelve of them have the same key by mistake, and each is told.
async fn thirteen_enqueues_get_thirteen_verdicts(db: Db) {
    let keys = [["hourly"; 12].as_slice(), &["other"]].concat();
    let verdicts = join_all(
        keys.iter()
            .map(async |key| db.store().enqueue(&[NewTask::new("call", "{}").key(*key)]).await.unwrap()[0]),
    )
    .await;
    assert_eq!(verdicts.iter().filter(|verdict| verdict.created).count(), 2);
    assert!(verdicts[12].created);
    for verdict in &verdicts[..12] {
        assert_eq!(verdict.id, verdicts[0].id);
        assert_eq!(db.task(verdict.id).await.biz_key.as_deref(), Some("hourly"));
    }
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 2);
    assert!(db.try_sql("INSERT INTO permitq_task (kind, biz_key) VALUES ('call', 'hourly')").await.is_err());
}

async fn a_payload_is_whole_or_refused(db: Db) {
    const MOST: usize = 4 << 20;
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let mut a = db.consumer("a").await;
    for bytes in [(64 << 10) - 1, 64 << 10, (64 << 10) + 1, 1 << 20, MOST] {
        let id = db.enqueue_one(NewTask::new("call", text(bytes))).await;
        let claim = a.claim_one().await;
        assert!(claim.payload == text(bytes) && claim.attempt.task == id, "{bytes} bytes");
        a.finish(&[crate::support::ended(claim, &permitq::model::Outcome::succeeded(None))]).await;
    }
    for bytes in [MOST + 1, (16 << 20) + 1] {
        let refused = db.store().enqueue(&[NewTask::new("call", text(bytes))]).await;
        assert!(refused.is_err(), "{bytes} bytes");
        let by_hand = format!("INSERT INTO permitq_task (kind, payload) VALUES ('call', '{}')", text(bytes));
        assert!(db.try_sql(&by_hand).await.is_err(), "{bytes} bytes by hand");
    }
    // A server may have hung up on the hand.
    assert_eq!(db.store().states(None).await.unwrap(), [(State::Succeeded, 5)]);
}
