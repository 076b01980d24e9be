//! The unlocked look: one read that tells whether a claim could succeed.

use std::time::Duration;

use permitq::model::{NewTask, RunAt};
use permitq::store::{Left, SemaphoreLook};

use crate::support::Db;

contract![a_look_shows_permits_kinds_consumers_and_the_next_instant, a_saturated_look_writes_nothing,];

async fn a_look_shows_permits_kinds_consumers_and_the_next_instant(db: Db) {
    let mut store = db.store();
    let both = ["default".to_owned(), "second".to_owned(), "missing".to_owned()];
    let look = store.look(&both).await.unwrap();
    let empty = SemaphoreLook { name: "default".into(), max_permits: 4, in_use: 0, kinds: vec![] };
    assert_eq!((look.semaphores, look.alive, look.next_due), (vec![empty], 0, None));

    store.add_semaphore("second", 2, "test").await.unwrap();
    let second = |kind| NewTask { semaphore: Some("second".into()), ..NewTask::new(kind, "{}") };
    let later = NewTask { run_at: RunAt::In(Duration::from_hours(1)), ..NewTask::new("later", "{}") };
    store.enqueue(&[second("z"), second("b"), second("b"), NewTask::new("call", "{}"), later]).await.unwrap();
    let mut a = db.consumer("a").await;
    let _ = a.claim_one().await;
    db.consumer("b").await;
    db.leave("b", Left::Draining).await;
    let mut look = store.look(&both).await.unwrap();
    look.semaphores.sort_by(|a, b| a.name.cmp(&b.name));
    let kinds = vec!["b".to_owned(), "z".to_owned()];
    let expected = [
        SemaphoreLook { name: "default".into(), max_permits: 4, in_use: 1, kinds: vec![] },
        SemaphoreLook { name: "second".into(), max_permits: 2, in_use: 0, kinds },
    ];
    assert_eq!((look.semaphores.as_slice(), look.alive), (expected.as_slice(), 1));
    let due = look.next_due.unwrap();
    assert!(due > Duration::from_mins(59) && due <= Duration::from_hours(1), "{due:?}");

    db.age("permitq_task", "run_at", Duration::from_hours(2), "state = 'scheduled'").await;
    assert_eq!(store.look(&both).await.unwrap().next_due, Some(Duration::ZERO));
    assert!(store.look(&[]).await.unwrap().semaphores.is_empty());
}

async fn a_saturated_look_writes_nothing(db: Db) {
    db.enqueue(9).await;
    let _ = db.consumer("a").await.claim(9).await;
    let before = db.changes().await;
    let mut store = db.store();
    for _ in 0..5 {
        let look = store.look(&["default".to_owned()]).await.unwrap();
        assert_eq!((look.semaphores[0].in_use, look.semaphores[0].max_permits), (4, 4));
        assert_eq!(look.semaphores[0].kinds, ["call"]);
    }
    assert_eq!(db.changes().await, before);
}
