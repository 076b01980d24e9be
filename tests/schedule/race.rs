//! Two meet at one job: it is held open, they run into it, and one fires.

use permitq::store::RanByHand;
use tokio::spawn;

use super::*;

contract![
    two_schedulers_that_meet_fire_once,
    a_scheduler_and_a_hand_that_meet_start_one_run,
    a_pause_that_meets_a_fire_is_before_it_or_after_it,
];

const HELD: &str = "UPDATE permitq_job SET priority = priority";

async fn two_schedulers_that_meet_fire_once(db: Db) {
    let id = add_due(&db, &job("report")).await;
    let held = db.hold(&[HELD]).await;
    let mut passes: Vec<_> = (0..2)
        .map(|_| {
            let mut scheduler = scheduler(&db);
            spawn(async move { scheduler.pass().await.map(drop) })
        })
        .collect();
    for pass in &mut passes {
        held.holds_up(pass).await;
    }
    held.commit().await;
    for pass in passes {
        pass.await.unwrap().unwrap();
    }
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1)]);
    assert_eq!(runs(&db, "report").await.len(), 1);
    assert!(trigger(&db, id).await.next_fire_at > Some(now(&db).await));
}

async fn a_scheduler_and_a_hand_that_meet_start_one_run(db: Db) {
    let id = add_due(&db, &job("report")).await;
    for _ in 0..4 {
        let before = runs(&db, "report").await.len();
        let held = db.hold(&[HELD]).await;
        let (mut scheduler, mut store) = (scheduler(&db), db.store());
        let mut pass = spawn(async move { scheduler.pass().await.map(drop) });
        let mut hand = spawn(async move { store.run_by_hand("report", false, "me").await });
        held.holds_up(&mut pass).await;
        held.holds_up(&mut hand).await;
        held.commit().await;
        pass.await.unwrap().unwrap();
        let by_hand = hand.await.unwrap().unwrap();
        let all = runs(&db, "report").await;
        assert_eq!(all.len(), before + 1);
        match by_hand {
            RanByHand::Running(task) => assert_eq!(task, all[before]),
            RanByHand::Task(run) => {
                assert_eq!((run.id, run.created), (all[before], true));
                let last = instants(&db, "report").await.pop().unwrap();
                assert_eq!((last.fate, last.task), (Fate::Overlap, Some(run.id)));
            }
            RanByHand::NoJob => panic!(),
        }
        finish_all(&db).await;
        set_next(&db, id, now(&db).await).await;
    }
}

async fn a_pause_that_meets_a_fire_is_before_it_or_after_it(db: Db) {
    let id = add_due(&db, &job("report")).await;
    let held = db.hold(&[HELD]).await;
    let mut store = db.store();
    let mut pause = spawn(async move { store.pause("report", None, "me").await });
    held.holds_up(&mut pause).await;
    let mut scheduler = scheduler(&db);
    let mut pass = spawn(async move { scheduler.pass().await.map(drop) });
    held.holds_up(&mut pass).await;
    held.commit().await;
    assert_eq!(pause.await.unwrap().unwrap(), [id]);
    pass.await.unwrap().unwrap();
    let fired = runs(&db, "report").await.len();
    assert_eq!(fates(&db, "report").await.len(), fired);
    assert!(trigger(&db, id).await.paused);
    // Whichever came first: nothing fires any more.
    due_again(&db, id).await;
    super::pass(&db).await;
    assert_eq!(runs(&db, "report").await.len(), fired);
}
