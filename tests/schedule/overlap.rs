//! At most one run of a job at a time, over all its triggers and hands, unless it is allowed or forced.

use permitq::model::schedule::{Plan, When};
use permitq::store::RanByHand;

use super::*;

contract![
    an_instant_that_comes_during_a_run_is_skipped_and_recorded,
    an_instant_that_queues_waits_for_the_end,
    where_it_is_allowed_they_run_side_by_side,
    a_run_by_hand_is_refused_while_one_runs,
    a_fixed_delay_waits_for_whichever_run_stood_in_its_way,
    a_run_that_a_person_revives_counts,
];

/// Two triggers, both due now.
async fn two(db: &Db, name: &str, overlap: Overlap) -> (i64, i64) {
    let mut job = job(name);
    job.overlap = overlap;
    let start = now(db).await - seconds(2);
    let first = add_at(db, &job, &every(3600, start), start).await;
    (first, add_at(db, &job, &every(7200, start), start + Duration::from_millis(1)).await)
}

async fn an_instant_that_comes_during_a_run_is_skipped_and_recorded(db: Db) {
    let (first, second) = two(&db, "report", Overlap::Skip).await;
    pass(&db).await;
    let [run] = runs(&db, "report").await[..] else { panic!() };
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1), (Fate::Overlap, 1)]);
    let skipped = &instants(&db, "report").await[1];
    assert_eq!((skipped.trigger, skipped.task), (Some(second), Some(run)));
    // One row for all of them, however long it runs.
    for _ in 0..3 {
        due_again(&db, first).await;
        pass(&db).await;
    }
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1), (Fate::Overlap, 1), (Fate::Overlap, 3)]);
    finish_all(&db).await;
    // Under a key of its own: the instant that had its task was moved back above.
    set_next(&db, first, now(&db).await).await;
    pass(&db).await;
    assert_eq!(runs(&db, "report").await.len(), 2);
}

async fn an_instant_that_queues_waits_for_the_end(db: Db) {
    let (_, second) = two(&db, "report", Overlap::Queue).await;
    pass(&db).await;
    let look = db.store().schedules().await.unwrap();
    assert_eq!((look.due, look.waiting), (false, true));
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1)]);
    let planned = trigger(&db, second).await.next_fire_at;
    finish_all(&db).await;
    pass(&db).await;
    let all = instants(&db, "report").await;
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1); 2]);
    assert_eq!((all[1].trigger, Some(all[1].planned.first)), (Some(second), planned));
    let look = db.store().schedules().await.unwrap();
    assert_eq!((look.due, look.waiting), (false, false));
}

async fn where_it_is_allowed_they_run_side_by_side(db: Db) {
    two(&db, "report", Overlap::Allow).await;
    pass(&db).await;
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1); 2]);
    assert_eq!(runs(&db, "report").await.len(), 2);
}

async fn a_run_by_hand_is_refused_while_one_runs(db: Db) {
    let (first, _) = two(&db, "report", Overlap::Skip).await;
    pass(&db).await;
    let [run] = runs(&db, "report").await[..] else { panic!() };
    let by_hand = async |force| db.store().run_by_hand("report", force, "me").await.unwrap();
    assert_eq!(by_hand(false).await, RanByHand::Running(run));
    let RanByHand::Task(forced) = by_hand(true).await else { panic!() };
    let task = db.task(forced.id).await;
    assert_eq!((forced.created, &*task.source), (true, "manual:report"));
    let what = "SELECT concat(who, ' ', what, ' ', detail) FROM permitq_action WHERE task IS NOT NULL";
    assert_eq!(db.text(what).await, "me run report");

    // The newest run ends first: the other still counts, for triggers and hands.
    db.sql(&format!("UPDATE permitq_task SET run_at = created_at, priority = 1 WHERE id = {}", forced.id))
        .await;
    let mut consumer = db.consumer("c").await;
    let claim = consumer.claim_one().await;
    assert_eq!(claim.attempt.task, forced.id);
    consumer.finish(&[ended(claim, &permitq::model::Outcome::succeeded(None))]).await;
    assert_eq!(by_hand(false).await, RanByHand::Running(run));
    let before = runs(&db, "report").await;
    due_again(&db, first).await;
    pass(&db).await;
    assert_eq!(runs(&db, "report").await, before);

    finish_all(&db).await;
    let RanByHand::Task(alone) = by_hand(false).await else { panic!() };
    assert!(alone.created);
    // And a trigger respects a run by hand.
    due_again(&db, first).await;
    pass(&db).await;
    assert_eq!(instants(&db, "report").await.last().unwrap().task, Some(alone.id));
    assert_eq!(db.store().run_by_hand("nobody", false, "me").await.unwrap(), RanByHand::NoJob);
}

async fn a_fixed_delay_waits_for_whichever_run_stood_in_its_way(db: Db) {
    let RanByHand::NoJob = db.store().run_by_hand("report", false, "me").await.unwrap() else { panic!() };
    let start = now(&db).await - seconds(1);
    let delay = When { plan: Plan::FixedDelay(seconds(3600)), ..every(1, start) };
    let id = add_at(&db, &job("report"), &delay, start).await;
    let RanByHand::Task(by_hand) = db.store().run_by_hand("report", false, "me").await.unwrap() else {
        panic!()
    };
    pass(&db).await;
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1), (Fate::Overlap, 1)]);
    assert_eq!(trigger(&db, id).await.waits_for, Some(by_hand.id));
    finish_all(&db).await;
    pass(&db).await;
    let ended = db.task(by_hand.id).await.finished_at.unwrap();
    assert_eq!(trigger(&db, id).await.next_fire_at, Some(ended + seconds(3600)));
}

async fn a_run_that_a_person_revives_counts(db: Db) {
    let (first, _) = two(&db, "report", Overlap::Skip).await;
    pass(&db).await;
    let [run] = runs(&db, "report").await[..] else { panic!() };
    db.store().cancel(run, "me").await.unwrap();
    due_again(&db, first).await;
    set_next(&db, first, now(&db).await).await;
    pass(&db).await;
    let [_, newer] = runs(&db, "report").await[..] else { panic!() };
    db.store().cancel(newer, "me").await.unwrap();
    db.store().retry(run, "me").await.unwrap();
    assert_eq!(state(&db, run).await, State::Pending);
    assert_eq!(db.store().jobs(Some("report")).await.unwrap()[0].live, Some(run));
    assert_eq!(db.store().run_by_hand("report", false, "me").await.unwrap(), RanByHand::Running(run));
}
