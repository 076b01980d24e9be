//! `max_permits` belongs to the operator: any change acts at the next exchange, and interrupts nobody.

use permitq::model::{Ended, Outcome};
use permitq::store::Action;

use crate::support::{Db, ended};

contract![
    a_hand_over_keeps_the_permits_and_honours_the_max,
    the_operators_own_statement_is_felt_at_the_next_exchange,
    zero_stops_new_calls_and_interrupts_none,
    every_cap_that_was_in_force_is_kept,
    setting_the_cap_is_on_record_and_bad_values_are_refused,
    each_semaphore_has_a_cap_of_its_own,
];

async fn a_hand_over_keeps_the_permits_and_honours_the_max(db: Db) {
    // (in use, max from then on, ended, wanted, claimed): the rest of what was freed is given back.
    let table = [
        (4, 4, 2, 2, 2),
        (4, 4, 2, 1, 1),
        (4, 4, 4, 9, 4),
        (4, 3, 1, 1, 0),
        (4, 2, 3, 3, 1),
        (4, 2, 3, 9, 1),
        (4, 0, 4, 4, 0),
        (4, 6, 1, 1, 1),
        (4, 6, 1, 9, 3),
        (1, 4, 1, 4, 4),
        (0, 4, 0, 2, 2),
    ];
    let mut a = db.consumer("a").await;
    for case @ (in_use, max, ends, wanted, claimed) in table {
        db.enqueue(20).await;
        db.set_max(in_use).await;
        let mut claims = a.claim(9).await;
        db.holds(in_use).await;
        db.set_max(max).await;
        let done: Vec<Ended> =
            claims.drain(..ends).map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
        let got = a.exchange(&done, wanted).await.claims;
        assert_eq!(got.len(), claimed, "{case:?}");
        db.holds(in_use - i64::try_from(ends).unwrap() + i64::try_from(claimed).unwrap()).await;
        let rest: Vec<Ended> =
            claims.into_iter().chain(got).map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
        a.finish(&rest).await;
        db.holds(0).await;
    }
}

async fn the_operators_own_statement_is_felt_at_the_next_exchange(db: Db) {
    db.enqueue(20).await;
    let mut a = db.consumer("a").await;
    let mut held = 0;
    for (max, got) in [(1, 1), (6, 5), (2, 0), (7, 1)] {
        db.sql(&format!("UPDATE permitq_semaphore SET max_permits = {max}")).await;
        assert_eq!(a.claim(9).await.len(), got, "max {max}");
        held += i64::try_from(got).unwrap();
        db.holds(held).await;
    }
}

async fn zero_stops_new_calls_and_interrupts_none(db: Db) {
    db.enqueue(5).await;
    let mut a = db.consumer("a").await;
    let mut claims = a.claim(2).await;
    db.set_max(0).await;
    assert!(a.claim(1).await.is_empty());
    assert_eq!(a.store.beat("a", crate::support::LEASE).await.unwrap().unwrap().len(), 2);
    let first = ended(claims.remove(0), &Outcome::succeeded(None));
    assert!(a.exchange(&[first], 1).await.claims.is_empty());
    db.holds(1).await;
    db.set_max(4).await;
    assert_eq!(a.claim(9).await.len(), 3);
}

async fn every_cap_that_was_in_force_is_kept(db: Db) {
    db.set_max(6).await;
    db.set_max(6).await;
    db.sql("UPDATE permitq_semaphore SET max_permits = 2 WHERE name = 'default'").await;
    db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    let caps = "FROM permitq_limit WHERE semaphore = 'default'";
    assert_eq!(db.int(&format!("SELECT count(*) {caps}")).await, 3);
    for max in [4, 6, 2] {
        assert_eq!(db.int(&format!("SELECT count(*) {caps} AND max_permits = {max}")).await, 1);
    }
}

async fn setting_the_cap_is_on_record_and_bad_values_are_refused(db: Db) {
    let mut store = db.store();
    assert!(store.set_max("default", 6, "ann").await.unwrap());
    assert!(!store.set_max("missing", 6, "ann").await.unwrap());
    assert!(store.set_max("default", -1, "ann").await.is_err());
    assert!(store.add_semaphore("default", 1, "ann").await.is_err());
    assert_eq!(db.int("SELECT max_permits FROM permitq_semaphore").await, 6);
    let what = "SELECT count(*) FROM permitq_action WHERE who = 'ann'";
    assert_eq!(db.int(what).await, 1, "only what was done is on record");
    assert!(db.try_sql("UPDATE permitq_semaphore SET in_use = -1").await.is_err());
    let none: Vec<Action> = store.actions(1).await.unwrap();
    assert!(none.is_empty());
}

async fn each_semaphore_has_a_cap_of_its_own(db: Db) {
    db.store().add_semaphore("small", 1, "test").await.unwrap();
    let small = permitq::NewTask { semaphore: Some("small".into()), ..permitq::NewTask::new("call", "{}") };
    db.store().enqueue(&vec![small; 3]).await.unwrap();
    db.enqueue(9).await;
    let mut a = db.consumer("a").await;
    a.semaphore = "small".into();
    let mut claims = a.claim(9).await;
    assert_eq!(claims.len(), 1);
    a.semaphore = "default".into();
    assert_eq!(a.claim(9).await.len(), 4);
    db.holds(4).await;
    a.semaphore = "small".into();
    let done = ended(claims.remove(0), &Outcome::succeeded(None));
    assert_eq!(a.exchange(&[done], 1).await.claims.len(), 1);
    let mut semaphores = db.store().semaphores().await.unwrap();
    semaphores.sort_by_key(|semaphore| semaphore.max_permits);
    let seen: Vec<_> = semaphores.iter().map(|s| (&*s.name, s.in_use, s.held, s.waiting, s.free())).collect();
    assert_eq!(seen, [("small", 1, 1, 1, 0), ("default", 4, 4, 5, 0)]);
}
