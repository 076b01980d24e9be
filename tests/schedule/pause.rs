//! Pause, resume, remove.

use super::*;

contract![
    what_is_paused_does_not_fire_and_its_instants_are_on_record,
    what_is_removed_does_not_fire_and_its_runs_stay,
];

async fn what_is_paused_does_not_fire_and_its_instants_are_on_record(db: Db) {
    let start = now(&db).await - seconds(3700);
    let ids = [add_at(&db, &job("report"), &every(1800, start), start).await, {
        add_at(&db, &job("report"), &every(900, start), start + seconds(36_000)).await
    }];
    let mut store = db.store();
    assert_eq!(store.pause("report", None, "me").await.unwrap(), ids);
    assert_eq!(store.pause("report", None, "me").await.unwrap(), [0; 0]);
    pass(&db).await;
    assert_eq!(fates(&db, "report").await, []);
    // Two of half an hour each, and the first itself.
    assert_eq!(store.resume("report", Some(ids[0]), "me").await.unwrap(), [ids[0]]);
    assert_eq!(fates(&db, "report").await, [(Fate::Paused, 3)]);
    let [passed] = &instants(&db, "report").await[..] else { panic!() };
    assert_eq!((passed.planned.first, passed.planned.last), (start, start + seconds(3600)));
    assert_eq!(trigger(&db, ids[0]).await.next_fire_at, Some(start + seconds(5400)));
    assert!(trigger(&db, ids[1]).await.paused);
    // What was not due meanwhile stays as it was.
    assert_eq!(store.resume("report", None, "me").await.unwrap(), [ids[1]]);
    assert_eq!(trigger(&db, ids[1]).await.next_fire_at, Some(start + seconds(36_000)));
    assert_eq!(fates(&db, "report").await.len(), 1);
    let who = "SELECT count(*) FROM permitq_action WHERE who = 'me' AND what IN ('pause schedule', 'resume schedule')";
    assert_eq!(db.int(who).await, 3);
}

async fn what_is_removed_does_not_fire_and_its_runs_stay(db: Db) {
    let start = now(&db).await - seconds(1);
    let first = add_at(&db, &job("report"), &every(3600, start), start).await;
    pass(&db).await;
    let second = add_at(&db, &job("report"), &every(60, start), start).await;
    let mut store = db.store();
    assert!(store.remove_schedule("report", Some(second), "me").await.unwrap());
    assert!(!store.remove_schedule("report", Some(second), "me").await.unwrap());
    pass(&db).await;
    assert_eq!(fates(&db, "report").await, [(Fate::Fired, 1)]);
    due_again(&db, first).await;
    assert!(store.remove_schedule("report", None, "me").await.unwrap());
    assert!(!store.remove_schedule("report", None, "me").await.unwrap());
    pass(&db).await;
    assert_eq!(db.int("SELECT count(*) FROM permitq_trigger").await, 0);
    assert_eq!((runs(&db, "report").await.len(), fates(&db, "report").await.len()), (1, 1));
}
