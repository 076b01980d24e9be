//! The database's clock is set.

use permitq::model::schedule::decide;

use super::*;

contract![a_clock_that_ran_ahead_silences_nobody, what_the_plan_does_not_have_is_corrected_at_the_start,];

/// It ran eight hours ahead and fired; now it is right again. No instant has two tasks, and the next comes in time.
async fn a_clock_that_ran_ahead_silences_nobody(db: Db) {
    let clock = Clock::held();
    let mut scheduler = Scheduler::new(&db.database, clock.clone(), Options { poll: seconds(1) });
    let start = now(&db).await - seconds(5);
    let id = add_at(&db, &job("report"), &every(10, start), start).await;
    while scheduler.pass().await.unwrap().is_zero() {}
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1)]);
    finish_all(&db).await;

    // What the wrong hours left behind: it is due in eight hours, and an instant that is yet to come has its task.
    let far = start + seconds(8 * 3600);
    set_next(&db, id, far).await;
    let next = start + seconds(10);
    let early = db.enqueue_one(NewTask::new("call", "{}").key(format!("report/{next}"))).await;
    assert!(!scheduler.pass().await.unwrap().is_zero());
    assert_eq!(trigger(&db, id).await.next_fire_at, Some(far), "no clock was set");
    clock.advance(seconds(8 * 3600));
    assert!(scheduler.pass().await.unwrap().is_zero());
    let corrected = trigger(&db, id).await.next_fire_at.unwrap();
    let soon = now(&db).await + seconds(10);
    assert!(corrected > start && corrected <= soon, "{corrected}");

    // What has its task gets no second.
    for planned in [start, next] {
        set_next(&db, id, planned).await;
        let due = db.store().triggers(Some("report")).await.unwrap().remove(0);
        let decision = decide(due.when.as_ref().unwrap(), planned, planned, &Misfire::default());
        db.store().fire(&due, &decision, planned).await.unwrap().unwrap();
        finish_all(&db).await;
    }
    let all = instants(&db, "report").await;
    let exists = |n: usize| (all[n].fate, all[n].task, all[n].planned.first);
    assert_eq!(exists(1), (Fate::Exists, all[0].task, start));
    assert_eq!(exists(2), (Fate::Exists, Some(early), next));
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 2);
}

/// A zone's rules have changed since it was computed, or a hand has written it.
async fn what_the_plan_does_not_have_is_corrected_at_the_start(db: Db) {
    let noon = cron("0 12 * * *", "Europe/Berlin");
    let right = noon.after(now(&db).await).unwrap();
    let id = add_at(&db, &job("report"), &noon, right + seconds(3600)).await;
    let far = When { start: at("2099-01-01T00:00:00Z"), ..every(60, at("2099-01-01T00:00:00Z")) };
    let later = add_at(&db, &job("later"), &far, far.start).await;
    pass(&db).await;
    assert_eq!(trigger(&db, id).await.next_fire_at, Some(right));
    assert_eq!(trigger(&db, later).await.next_fire_at, Some(far.start));
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 0);
}
