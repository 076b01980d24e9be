//! Schedules: on every database by the store and a scheduler that is passed by hand, and by real processes.

mod clock;
mod fire;
mod misfire;
mod overlap;
mod pause;
mod process;
mod race;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use permitq::clock::Clock;
use permitq::model::schedule::{
    Cron, CronDialect, Fate, KeyTemplate, Misfire, NewJob, Overlap, Plan, PlannedInstant, Trigger, When,
};
use permitq::model::{NewTask, State};
use permitq::schedule::{Options, Scheduler};
use permitq::store::{Added, NewSchedule, Run};

use crate::support::{Db, ended};

/// A job of kind `call`.
fn job(name: &str) -> NewJob {
    NewJob {
        name: name.to_owned(),
        task: NewTask { semaphore: Some("default".to_owned()), ..NewTask::new("call", "{}") },
        key_template: KeyTemplate::default(),
        misfire: Misfire::default(),
        overlap: Overlap::default(),
    }
}

fn every(seconds: u64, start: Timestamp) -> When {
    When { plan: Plan::Interval(Duration::from_secs(seconds)), zone: TimeZone::UTC, start, end: None }
}

fn cron(expression: &str, zone: &str) -> When {
    let plan = Plan::Cron(Cron::parse(expression, CronDialect::Unix).unwrap());
    When { plan, zone: When::zone(zone).unwrap(), start: Timestamp::UNIX_EPOCH, end: None }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The database's clock.
async fn now(db: &Db) -> Timestamp {
    Timestamp::from_microsecond(db.store().clock().await.unwrap()).unwrap()
}

/// Adds a trigger that is due next at `first`.
async fn add_at(db: &Db, job: &NewJob, when: &When, first: Timestamp) -> i64 {
    let new = NewSchedule {
        name: &job.name,
        job: Some(job),
        when,
        start_is_given: true,
        first: Some(first),
        who: "test",
    };
    match db.store().add_schedule(&new).await.unwrap() {
        Added::Trigger { id, created: true } => id,
        other => panic!("{other:?}"),
    }
}

/// Adds a trigger that has just come due.
async fn add_due(db: &Db, job: &NewJob) -> i64 {
    let start = now(db).await - seconds(1);
    add_at(db, job, &every(3600, start), start).await
}

async fn trigger(db: &Db, id: i64) -> Trigger {
    let all = db.store().triggers(None).await.unwrap();
    all.into_iter().find(|one| one.id == id).unwrap()
}

/// It is due next at this instant, whatever its plan says.
async fn set_next(db: &Db, id: i64, next: Timestamp) {
    let one = trigger(db, id).await;
    assert!(db.store().reset(&one, Some(next)).await.unwrap());
}

/// It is due again: by an hour of its plan.
async fn due_again(db: &Db, id: i64) {
    db.age("permitq_trigger", "next_fire_at", seconds(3600), &format!("id = {id}")).await;
}

fn scheduler(db: &Db) -> Scheduler {
    Scheduler::new(&db.database, Clock::default(), Options { poll: seconds(1) })
}

/// Passes until nothing is left to do.
async fn pass(db: &Db) {
    let mut scheduler = scheduler(db);
    while scheduler.pass().await.unwrap().is_zero() {}
}

/// What became of a job's instants, oldest first: fate and how many.
async fn fates(db: &Db, job: &str) -> Vec<(Fate, u32)> {
    instants(db, job).await.iter().map(|one| (one.fate, one.planned.count)).collect()
}

async fn instants(db: &Db, job: &str) -> Vec<PlannedInstant> {
    let mut all = db.store().instants(job, 1000).await.unwrap();
    all.reverse();
    all
}

/// The tasks of a job, oldest first.
async fn runs(db: &Db, job: &str) -> Vec<i64> {
    let list = format!("SELECT coalesce(max(id), 0) FROM permitq_task WHERE job = '{job}'");
    let mut ids = Vec::new();
    for id in 1..=db.int(&list).await {
        if db.int(&format!("SELECT count(*) FROM permitq_task WHERE job = '{job}' AND id = {id}")).await == 1
        {
            ids.push(id);
        }
    }
    ids
}

/// Every task runs, and succeeds.
async fn finish_all(db: &Db) {
    let mut consumer = db.consumer(&format!("c{}", now(db).await.as_microsecond())).await;
    consumer.store.promote(1000).await.unwrap();
    loop {
        let claims = consumer.claim(4).await;
        if claims.is_empty() {
            break;
        }
        let done: Vec<_> =
            claims.into_iter().map(|claim| ended(claim, &permitq::model::Outcome::succeeded(None))).collect();
        consumer.finish(&done).await;
    }
    let open = "SELECT count(*) FROM permitq_task WHERE finished_at IS NULL";
    assert_eq!(db.int(open).await, 0);
}

fn fired(run: &Run) -> bool {
    run.fate == Fate::Fired
}

async fn state(db: &Db, task: i64) -> State {
    db.task(task).await.state
}
