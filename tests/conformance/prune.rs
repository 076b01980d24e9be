//! Retention: what is over and old goes, with all that belongs to it; nothing else does, and nothing waits for it.

use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{NewTask, Outcome, Retention, State, Why};
use permitq::store::{Dialect, Doomed, Forgotten};
use permitq::upkeep::{Upkeep, Walk};

use crate::support::{Db, ended, upkeep};

contract![
    what_is_old_goes_with_all_that_belongs_to_it,
    what_is_not_over_or_not_old_enough_stays,
    a_task_whose_permit_cools_stays_and_hides_nothing,
    what_never_goes_keeps_what_belongs_to_no_task,
    records_of_no_task_go_when_they_are_old,
    a_job_that_fires_each_second_keeps_its_newest_runs,
    what_somebody_has_locked_is_passed_by,
    a_task_that_was_retried_meanwhile_stays,
    upkeep_prunes_by_itself_and_not_by_a_clock_that_stepped,
];

const DAY: Duration = Duration::from_hours(24);

/// Everything that is old; answers what went.
async fn prune(db: &Db, retention: Retention) -> Forgotten {
    let mut store = db.store();
    let mut walk = Walk::begin(&mut store, retention).await.unwrap();
    let mut forgotten = Forgotten::default();
    while let Some((_, doomed)) = walk.next(&mut store).await.unwrap() {
        forgotten += store.forget(&doomed).await.unwrap();
    }
    walk.sweep(&mut store).await.unwrap();
    forgotten
}

/// So many tasks that have come to this end.
async fn finished(db: &Db, n: usize, outcome: &Outcome) -> Vec<i64> {
    db.enqueue(n).await;
    let mut consumer = db.consumer(&format!("c{}", fastrand())).await;
    let mut tasks = Vec::new();
    while tasks.len() < n {
        let claims = consumer.claim(n - tasks.len()).await;
        tasks.extend(claims.iter().map(|claim| claim.attempt.task));
        let ends: Vec<_> = claims.into_iter().map(|claim| ended(claim, outcome)).collect();
        consumer.finish(&ends).await;
    }
    tasks
}

fn fastrand() -> u128 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos()
}

async fn age(db: &Db, by: Duration, rows: &str) {
    db.age("permitq_task", "finished_at", by, &format!("finished_at IS NOT NULL AND {rows}")).await;
}

async fn count(db: &Db, table: &str) -> i64 {
    db.int(&format!("SELECT count(*) FROM {table}")).await
}

async fn what_is_old_goes_with_all_that_belongs_to_it(db: Db) {
    let mut store = db.store();
    let keyed = NewTask { biz_key: Some("K".to_owned()), ..NewTask::new("call", "{}") };
    let first = db.enqueue_one(keyed.clone()).await;
    store.cancel(first, "me").await.unwrap();
    let done = finished(&db, 450, &Outcome::succeeded(None)).await;
    let young = finished(&db, 3, &Outcome::succeeded(None)).await;
    age(&db, DAY * 8, &format!("id <= {}", done.iter().max().unwrap())).await;
    // The cancelled one stays for longer, and so does its key.
    assert_eq!(
        prune(&db, Retention::default()).await,
        Forgotten { tasks: 450, attempts: 450, ..Forgotten::default() }
    );
    assert_eq!(db.enqueue_one(keyed.clone()).await, first);
    age(&db, DAY * 23, &format!("id = {first}")).await;
    let gone = Forgotten { tasks: 1, actions: 1, ..Forgotten::default() };
    assert_eq!(prune(&db, Retention::default()).await, gone);
    assert_eq!(count(&db, "permitq_task").await, 3);
    assert_eq!(count(&db, "permitq_attempt").await, 3);
    assert_eq!(count(&db, "permitq_action").await, 0);
    assert!(db.enqueue_one(keyed).await > young[2], "its key is free again");
    assert_eq!(store.task(first).await.unwrap(), None);
}

async fn what_is_not_over_or_not_old_enough_stays(db: Db) {
    let later = NewTask { run_at: permitq::model::RunAt::In(DAY), ..NewTask::new("call", "{}") };
    db.enqueue_one(later).await;
    db.enqueue(5).await;
    let mut consumer = db.consumer("c").await;
    let running = consumer.claim(2).await;
    assert_eq!(running.len(), 2);
    db.sql("INSERT INTO permitq_task (kind, state, waiting_for) VALUES ('call', 'blocked', 1)").await;
    let ends = [finished(&db, 1, &Outcome::succeeded(None)).await[0]];
    age(&db, Duration::from_mins(7 * 24 * 60 - 1), "1 = 1").await;
    // All that is not over is as old as the hills.
    for column in ["created_at", "run_at", "started_at"] {
        db.age("permitq_task", column, DAY * 400, &format!("id <> {} AND {column} IS NOT NULL", ends[0]))
            .await;
    }
    let before = count(&db, "permitq_task").await;
    assert_eq!(prune(&db, Retention::default()).await, Forgotten::default());
    assert_eq!(count(&db, "permitq_task").await, before);
    db.holds(2).await;
}

/// More of them than a batch has rows.
async fn a_task_whose_permit_cools_stays_and_hides_nothing(db: Db) {
    db.set_max(1000).await;
    let cooling = finished(&db, 250, &Outcome::unclear(Why::Handler, "who knows")).await;
    db.sql("UPDATE permitq_task SET state = 'pending' WHERE state = 'scheduled'").await;
    for task in &cooling {
        db.store().cancel(*task, "me").await.unwrap();
    }
    let behind = finished(&db, 1, &Outcome::succeeded(None)).await[0];
    let cancelled = db.enqueue(1).await[0];
    db.store().cancel(cancelled, "me").await.unwrap();
    age(&db, DAY * 40, "1 = 1").await;
    age(&db, Duration::from_hours(1), &format!("id NOT IN ({behind}, {cancelled})")).await;
    let gone = Forgotten { tasks: 2, attempts: 1, actions: 1, ..Forgotten::default() };
    assert_eq!(prune(&db, Retention::default()).await, gone);
    assert_eq!(count(&db, "permitq_task").await, 250);
    db.holds(250).await;
    // The last look before the deletion is the one that counts.
    let doomed = Doomed { tasks: cooling, before: i64::MAX / 2, ..Doomed::default() };
    let doomed = Doomed { before: db.store().clock().await.unwrap(), ..doomed };
    assert_eq!(db.store().forget(&doomed).await.unwrap(), Forgotten::default());
    assert_eq!(db.cool_down().await, 250);
    assert_eq!(prune(&db, Retention::default()).await.tasks, 250);
    db.holds(0).await;
}

async fn what_never_goes_keeps_what_belongs_to_no_task(db: Db) {
    finished(&db, 1, &Outcome::failed("no")).await;
    finished(&db, 1, &Outcome::succeeded(None)).await;
    db.set_max(5).await;
    age(&db, DAY * 4000, "1 = 1").await;
    db.age("permitq_action", "at", DAY * 4000, "1 = 1").await;
    let retention = Retention { failed: None, ..Retention::default() };
    assert_eq!(prune(&db, retention).await, Forgotten { tasks: 1, attempts: 1, ..Forgotten::default() });
    assert_eq!(db.int("SELECT count(*) FROM permitq_task WHERE state = 'failed'").await, 1);
    assert_eq!(count(&db, "permitq_action").await, 1);
}

async fn records_of_no_task_go_when_they_are_old(db: Db) {
    let mut store = db.store();
    for max in [5, 6, 7] {
        db.age("permitq_limit", "since", Duration::from_secs(1), "1 = 1").await;
        db.set_max(max).await;
    }
    store.add_semaphore("other", 1, "me").await.unwrap();
    let running = db.enqueue(1).await[0];
    let mut consumer = db.consumer("c").await;
    let _claim = consumer.claim_one().await;
    db.sql(&format!(
        "INSERT INTO permitq_action (who, what, task) VALUES ('me', 'retry', {running}), ('me', 'retry', 999999);
         INSERT INTO permitq_instant (job, planned_at, last_at, fate, task)
         SELECT 'j', since, since, 'fired', {running} FROM permitq_limit WHERE semaphore = 'other';
         INSERT INTO permitq_instant (job, planned_at, last_at, fate, task)
         SELECT 'j', since, since, 'fired', 999999 FROM permitq_limit WHERE semaphore = 'other';
         INSERT INTO permitq_instant (job, planned_at, last_at, fate)
         SELECT 'j', since, since, 'misfired' FROM permitq_limit WHERE semaphore = 'other'"
    ))
    .await;
    let tables = ["permitq_action", "permitq_instant", "permitq_limit"];
    let retention = Retention { succeeded: Some(DAY), failed: Some(DAY), cancelled: Some(DAY), per_job: 9 };
    for (aged, left) in [(DAY * 29, [6, 3, 5]), (DAY * 2, [1, 1, 2])] {
        for (table, column) in tables.iter().zip(["at", "at", "since"]) {
            db.age(table, column, aged, "1 = 1").await;
        }
        prune(&db, retention).await;
        let mut counts = Vec::new();
        for table in tables {
            counts.push(count(&db, table).await);
        }
        assert_eq!(counts, left);
    }
    // The cap in force is still on record.
    assert_eq!(db.int("SELECT max_permits FROM permitq_limit WHERE semaphore = 'default'").await, 7);
    let young = "INSERT INTO permitq_task (kind) VALUES ('call')";
    db.sql(young).await;
}

/// A schedule gone wild, with long errors: its table stays as long as its newest runs, and no run that is not over goes.
async fn a_job_that_fires_each_second_keeps_its_newest_runs(db: Db) {
    let error = "x".repeat(2048);
    db.sql("INSERT INTO permitq_job (name, kind) VALUES ('wild', 'call'), ('tame', 'call')").await;
    let runs = db.enqueue(650).await;
    for runs in runs.chunks(10) {
        let instant = |(n, run): (usize, &i64)| {
            let job = if n == 9 { "tame" } else { "wild" };
            format!("SELECT '{job}', since, since, 'fired', {run} FROM permitq_limit")
        };
        let instants: Vec<_> = runs.iter().enumerate().map(instant).collect();
        let instants = instants.join(" UNION ALL ");
        db.sql(&format!("INSERT INTO permitq_instant (job, planned_at, last_at, fate, task) {instants}"))
            .await;
    }
    let mut consumer = db.consumer("c").await;
    db.set_max(1000).await;
    let mut claims = consumer.claim(650).await;
    let running = claims.split_off(640);
    let outcome = Outcome::failed(error);
    consumer.finish(&claims.into_iter().map(|claim| ended(claim, &outcome)).collect::<Vec<_>>()).await;
    // The oldest of all runs is not over.
    let oldest = runs[0];
    db.sql(&format!(
        "UPDATE permitq_instant SET task = {} WHERE task = {oldest}",
        running.last().unwrap().attempt.task
    ))
    .await;

    let retention = Retention { per_job: 100, ..Retention::default() };
    let gone = prune(&db, retention).await;
    let wild = db.int("SELECT count(*) FROM permitq_instant WHERE job = 'wild'").await;
    assert_eq!(wild, 100 + 1, "{gone:?}");
    assert_eq!(db.int("SELECT count(*) FROM permitq_instant WHERE job = 'tame'").await, 65);
    // 585 of the wild one: its newest hundred stay, the one that is not over, and the one that no instant names.
    assert_eq!((gone.tasks, gone.attempts, gone.instants), (484, 484, 484));
    assert_eq!(count(&db, "permitq_task").await, 650 - 484);
    db.holds(10).await;
    assert_eq!(prune(&db, retention).await, Forgotten::default());
}

/// SQLite has one lock, for which whoever deletes waits like everybody.
async fn what_somebody_has_locked_is_passed_by(db: Db) {
    let tasks = finished(&db, 3, &Outcome::succeeded(None)).await;
    age(&db, DAY * 8, "1 = 1").await;
    let doomed =
        Doomed { before: db.store().clock().await.unwrap(), tasks: tasks.clone(), ..Doomed::default() };
    let mut store = db.store();
    let sqlite = db.database.dialect() == Dialect::Sqlite;
    let lock = if sqlite { "" } else { " FOR UPDATE" };
    let held = db.hold(&[&format!("SELECT id FROM permitq_task WHERE id = {}{lock}", tasks[1])]).await;
    let mut forget = tokio::spawn(async move { store.forget(&doomed).await.unwrap().tasks });
    if sqlite {
        held.holds_up(&mut forget).await;
        held.commit().await;
        assert_eq!(forget.await.unwrap(), 3);
    } else {
        assert_eq!(forget.await.unwrap(), 2);
        held.commit().await;
        assert_eq!(prune(&db, Retention::default()).await.tasks, 1);
    }
}

/// Between the look and the deletion, which restates what the look saw.
async fn a_task_that_was_retried_meanwhile_stays(db: Db) {
    let task = finished(&db, 1, &Outcome::failed("no")).await[0];
    age(&db, DAY * 40, "1 = 1").await;
    let mut store = db.store();
    let mut walk = Walk::begin(&mut store, Retention::default()).await.unwrap();
    let mut found = Vec::new();
    while let Some((_, doomed)) = walk.next(&mut store).await.unwrap() {
        found.extend((!doomed.is_empty()).then_some(doomed));
    }
    assert_eq!(found.len(), 1);
    db.store().retry(task, "me").await.unwrap();
    assert_eq!(store.forget(&found[0]).await.unwrap(), Forgotten::default());
    assert_eq!(db.task(task).await.state, State::Pending);
}

async fn upkeep_prunes_by_itself_and_not_by_a_clock_that_stepped(db: Db) {
    let clock = Clock::held();
    let mut upkeep = Upkeep::new(&db.database, clock.clone(), upkeep(Duration::from_mins(20)));
    finished(&db, 1, &Outcome::succeeded(None)).await;
    age(&db, DAY * 8, "1 = 1").await;
    upkeep.pass().await.unwrap();
    assert_eq!(count(&db, "permitq_task").await, 0);

    finished(&db, 1, &Outcome::succeeded(None)).await;
    age(&db, DAY * 8, "1 = 1").await;
    // Our clock moves, the database's does not.
    clock.advance(Duration::from_mins(11));
    upkeep.pass().await.unwrap();
    assert_eq!(count(&db, "permitq_task").await, 1);
}
