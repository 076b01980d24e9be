//! What keeps a task that is due from being claimed: a pause, a downstream that is down, its deadline; and its age, which
//! brings it forward.

use std::time::Duration;

use permitq::model::{Claim, Ended, NewTask, Outcome, RunAt, Scope, Signal, State};
use permitq::store::{Cancelled, Retried};

use crate::support::{Consumer, Db, ended, policy};

contract![
    what_is_paused_is_neither_claimed_nor_handed_over,
    a_plain_insert_pauses_and_a_plain_delete_resumes,
    a_downstream_that_is_down_is_left_alone_until_one_probe_passes,
    a_probe_that_dies_is_followed_by_another,
    only_the_probe_moves_the_pause,
    what_has_expired_is_never_started,
    what_has_expired_is_cancelled_wherever_it_waits,
    a_retried_task_has_no_deadline_that_has_passed,
    age_brings_the_head_of_a_queue_forward_and_no_further_than_the_top,
];

fn of_kind(kind: &str) -> NewTask {
    NewTask::new(kind, "{}")
}

fn done(claims: Vec<Claim>) -> Vec<Ended> {
    claims.into_iter().map(|claim| ended(claim, &Outcome::succeeded(None))).collect()
}

async fn both(db: &Db) -> Consumer {
    let mut a = db.consumer("a").await;
    a.policies = vec![policy("call"), policy("mail")];
    a
}

async fn what_is_paused_is_neither_claimed_nor_handed_over(db: Db) {
    let mut a = both(&db).await;
    let mut store = db.store();
    let tasks: Vec<_> = (0..12).flat_map(|_| [of_kind("call"), of_kind("mail")]).collect();
    store.enqueue(&tasks).await.unwrap();
    for (scope, name, left) in [
        (Scope::Fleet, "", ""),
        (Scope::Semaphore, "default", ""),
        (Scope::Kind, "call", "mail"),
        (Scope::Downstream, "default", ""),
        (Scope::Kind, "other", "call"),
    ] {
        // Running already: they go on, and give their permits back.
        let claims = a.claim(2).await;
        assert_eq!(claims.len(), 2, "{scope} {name}");
        store.pause_claims(scope, name, Some("a test"), "ann").await.unwrap();
        let kinds = |claims: &[Claim]| claims.iter().all(|claim| left == "call" || claim.kind == left);
        let handed = a.exchange(&done(claims), 2).await.claims;
        assert!(handed.len() == if left.is_empty() { 0 } else { 2 } && kinds(&handed), "{scope} {name}");
        let claimed = a.claim(2).await;
        assert!(claimed.len() == handed.len() && kinds(&claimed), "{scope} {name}");
        let look = store.look(&["default".to_owned()]).await.unwrap();
        assert_eq!((look.paused.len(), look.paused[0].scope, &*look.paused[0].name), (1, scope, name));
        assert_eq!(look.paused[0].probe_in(), None, "nothing is to be probed");
        let pause = store.pauses().await.unwrap().remove(0);
        assert_eq!((&*pause.who, pause.why.as_deref(), pause.until), ("ann", Some("a test"), None));
        a.finish(&done(handed)).await;
        a.finish(&done(claimed)).await;
        db.holds(0).await;
        assert!(store.resume_claims(scope, name, "ann").await.unwrap());
        assert!(!store.resume_claims(scope, name, "ann").await.unwrap());
    }
    assert!(store.look(&["default".to_owned()]).await.unwrap().paused.is_empty());
}

async fn a_plain_insert_pauses_and_a_plain_delete_resumes(db: Db) {
    let mut a = db.consumer("a").await;
    db.enqueue(1).await;
    db.sql("INSERT INTO permitq_pause (what, name) VALUES ('kind', 'call')").await;
    db.sql("INSERT INTO permitq_pause (what, name) VALUES ('kind', 'it''s \"q\"')").await;
    assert!(a.claim(1).await.is_empty());
    assert_eq!(db.store().look(&["default".to_owned()]).await.unwrap().paused.len(), 2);
    assert!(db.try_sql("INSERT INTO permitq_pause (what, name) VALUES ('kind', '')").await.is_err());
    assert!(db.try_sql("INSERT INTO permitq_pause (what, name) VALUES ('fleet', 'x')").await.is_err());
    assert!(db.try_sql("INSERT INTO permitq_pause (what, name) VALUES ('task', 'x')").await.is_err());
    db.sql("DELETE FROM permitq_pause").await;
    let _ = a.claim_one().await;
}

/// This attempt's downstream, `default`, was found down, or up.
fn said(claim: Claim, down: bool) -> Ended {
    let outcome = if down { Outcome::down("refused", None) } else { Outcome::succeeded(None) };
    let signal = Signal { downstream: "default".to_owned(), down: down.then_some(Duration::ZERO) };
    Ended { signal: Some(signal), ..ended(claim, &outcome) }
}

/// A minute passes for the pause and for whoever waits.
async fn minute(db: &Db) {
    let minute = Duration::from_mins(1);
    db.age("permitq_pause", "until", minute, "what = 'downstream'").await;
    db.age("permitq_task", "run_at", minute, "state = 'scheduled'").await;
    db.store().promote(100).await.unwrap();
}

async fn a_downstream_that_is_down_is_left_alone_until_one_probe_passes(db: Db) {
    db.enqueue(6).await;
    let (mut a, mut b) = (db.consumer("a").await, db.consumer("b").await);
    let claims = a.claim(3).await;
    let ends: Vec<_> = claims.into_iter().map(|claim| said(claim, true)).collect();
    // Also where it wants tasks in the same exchange: it gets none.
    assert!(a.exchange(&ends, 3).await.claims.is_empty());
    db.holds(0).await;
    assert_eq!(db.int("SELECT max(attempts) FROM permitq_task").await, 0, "no attempt is burnt");
    assert!(b.claim(3).await.is_empty());
    let pause = db.store().pauses().await.unwrap().remove(0);
    assert_eq!((pause.scope, pause.failures, pause.why.as_deref()), (Scope::Downstream, 1, Some("refused")));
    let look = db.store().look(&["default".to_owned()]).await.unwrap();
    let wait = look.paused[0].probe_in().unwrap();
    assert!(!wait.is_zero() && wait <= Duration::from_secs(1), "{wait:?}");

    b.probe = Some("default".to_owned());
    a.probe.clone_from(&b.probe);
    assert!(b.claim(1).await.is_empty(), "it is too early");
    minute(&db).await;
    let probe = b.claim_one().await;
    db.age("permitq_pause", "until", Duration::from_mins(1), "what = 'downstream'").await;
    assert!(a.claim(1).await.is_empty(), "one probe at a time");
    let look = db.store().look(&["default".to_owned()]).await.unwrap();
    assert_eq!(look.paused[0].probe_in(), None, "nobody else need come");

    // Still down: longer each time.
    let attempt = probe.attempt;
    b.finish(&[said(probe, true)]).await;
    let pause = db.store().pauses().await.unwrap().remove(0);
    assert_eq!((pause.failures, pause.probe), (2, None));
    let wait = db.store().look(&["default".to_owned()]).await.unwrap().paused[0].probe_in().unwrap();
    assert!(wait > Duration::from_secs(1) && wait <= Duration::from_secs(2), "{wait:?}");

    minute(&db).await;
    let probe = a.claim_one().await;
    assert!(
        !db.store().reopen("default", attempt).await.unwrap(),
        "the first probe has nothing to say any more"
    );
    a.finish(&[said(probe, false)]).await;
    assert!(db.store().pauses().await.unwrap().is_empty());
    (a.probe, b.probe) = (None, None);
    assert_eq!(b.claim(3).await.len(), 3);
}

async fn a_probe_that_dies_is_followed_by_another(db: Db) {
    db.enqueue(3).await;
    let (mut a, mut b) = (db.consumer("a").await, db.consumer("b").await);
    let claim = a.claim_one().await;
    a.finish(&[said(claim, true)]).await;
    minute(&db).await;
    a.probe = Some("default".to_owned());
    b.probe.clone_from(&a.probe);
    let dead = a.claim_one().await;
    minute(&db).await;
    assert!(b.claim(1).await.is_empty());
    db.vanish("a").await;
    assert_eq!(db.reclaim().await, [dead.attempt.task]);
    minute(&db).await;
    let next = b.claim_one().await;
    // What the dead one says after all changes nothing.
    assert!(!db.store().reopen("default", dead.attempt).await.unwrap());
    assert!(db.store().reopen("default", next.attempt).await.unwrap(), "a long call is a good sign, too");
    b.probe = None;
    let _ = b.claim_one().await;
}

async fn only_the_probe_moves_the_pause(db: Db) {
    db.enqueue(4).await;
    let mut a = db.consumer("a").await;
    let mut claims = a.claim(3).await;
    a.finish(&[said(claims.pop().unwrap(), true)]).await;
    let before = db.store().pauses().await.unwrap();
    // Calls that began before: neither the bad nor the good ones.
    a.finish(&[said(claims.pop().unwrap(), true)]).await;
    a.finish(&[said(claims.pop().unwrap(), false)]).await;
    assert_eq!(db.store().pauses().await.unwrap(), before);
    // A person's pause is not probed, and not ended by a probe.
    db.store().pause_claims(Scope::Downstream, "default", None, "ann").await.unwrap();
    minute(&db).await;
    a.probe = Some("default".to_owned());
    assert!(a.claim(1).await.is_empty());
}

fn expiring(kind: &str) -> NewTask {
    NewTask { expires: Some(RunAt::In(Duration::from_hours(1))), ..NewTask::new(kind, "{}") }
}

async fn pass(db: &Db, rows: &str) {
    db.age("permitq_task", "expires_at", Duration::from_hours(2), rows).await;
}

async fn what_has_expired_is_never_started(db: Db) {
    let mut a = db.consumer("a").await;
    let tasks = [of_kind("call"), expiring("call"), expiring("call"), of_kind("call"), of_kind("call")];
    let ids = crate::support::ids(&db.store().enqueue(&tasks).await.unwrap());
    let claim = a.claim_one().await;
    pass(&db, &format!("id = {}", ids[1])).await;
    // By hand-over, and by claim.
    let mut claims = a.exchange(&[ended(claim, &Outcome::succeeded(None))], 1).await.claims;
    claims.extend(a.claim(4).await);
    let started: Vec<_> = claims.iter().map(|claim| claim.attempt.task).collect();
    assert_eq!(started, ids[2..]);
    let expired = db.task(ids[1]).await;
    assert_eq!((expired.state, expired.error.as_deref()), (State::Cancelled, Some("expired")));
    assert_eq!((expired.attempts, expired.claim_no), (0, 0));
    // Whoever has begun by then may end.
    pass(&db, &format!("id = {}", ids[2])).await;
    assert_eq!(db.store().expire(100).await.unwrap(), 0);
    a.finish(&done(claims)).await;
    assert_eq!(db.task(ids[2]).await.state, State::Succeeded);
}

async fn what_has_expired_is_cancelled_wherever_it_waits(db: Db) {
    let later = NewTask { run_at: RunAt::In(Duration::from_hours(9)), ..expiring("call") };
    let mut ids = vec![db.enqueue_one(expiring("call")).await, db.enqueue_one(later).await];
    db.sql("INSERT INTO permitq_task (kind, state, waiting_for, biz_key) VALUES ('call', 'blocked', 1, 'b')")
        .await;
    ids.push(db.int("SELECT id FROM permitq_task WHERE biz_key = 'b'").await);
    db.sql("UPDATE permitq_task SET expires_at = run_at WHERE biz_key = 'b'").await;
    let kept = db.enqueue_one(expiring("call")).await;
    let never = db.enqueue_one(of_kind("call")).await;
    pass(&db, &format!("id < {kept}")).await;
    let check = db.store().check(Duration::from_mins(2)).await.unwrap();
    assert!(check.lapsed);
    assert_eq!(db.store().expire(2).await.unwrap(), 2, "in bounded batches");
    assert_eq!(db.store().expire(2).await.unwrap(), 1);
    for id in ids {
        let task = db.task(id).await;
        assert_eq!((task.state, task.error.as_deref()), (State::Cancelled, Some("expired")));
    }
    for id in [kept, never] {
        assert_eq!(db.task(id).await.state, State::Pending);
    }
    assert!(!db.store().check(Duration::from_mins(2)).await.unwrap().lapsed);
}

async fn a_retried_task_has_no_deadline_that_has_passed(db: Db) {
    let [soon, later] = [db.enqueue_one(expiring("call")).await, db.enqueue_one(expiring("call")).await];
    pass(&db, &format!("id = {soon}")).await;
    let mut store = db.store();
    assert_eq!(store.expire(9).await.unwrap(), 1);
    assert_eq!(store.cancel(later, "ann").await.unwrap(), Cancelled::Done);
    for id in [soon, later] {
        assert_eq!(store.retry(id, "ann").await.unwrap(), Retried::Done);
    }
    assert_eq!(db.task(soon).await.expires_at, None);
    assert!(db.task(later).await.expires_at.is_some());
    assert_eq!(db.consumer("a").await.claim(9).await.len(), 2);
}

async fn age_brings_the_head_of_a_queue_forward_and_no_further_than_the_top(db: Db) {
    let minute = Duration::from_mins(1);
    let of = |priority: i32| NewTask { priority, ..of_kind("call") };
    let [old, young, high] =
        [db.enqueue_one(of(1)).await, db.enqueue_one(of(1)).await, db.enqueue_one(of(3)).await];
    db.age("permitq_task", "run_at", minute * 5, &format!("id = {old}")).await;
    let mut store = db.store();
    let raise = async |store: &mut permitq::store::Store| store.age("default", "call", minute).await.unwrap();
    assert_eq!(raise(&mut store).await, 1);
    let task = db.task(old).await;
    assert_eq!((task.priority, task.aged), (2, 1), "what was asked for is still to be seen");
    assert_eq!(raise(&mut store).await, 1);
    assert_eq!(raise(&mut store).await, 0, "at the top, its age decides");
    let claims = db.consumer("a").await.claim(2).await;
    let first: Vec<_> = claims.iter().map(|claim| claim.attempt.task).collect();
    assert_eq!(first, [old, high]);
    assert_eq!(db.task(young).await.priority, 1);
    // A retry begins with what was asked for.
    assert_eq!(store.cancel(old, "ann").await.unwrap(), Cancelled::Cooling);
    let _ = store.retry(old, "ann").await.unwrap();
    let task = db.task(old).await;
    assert_eq!((task.priority, task.aged), (1, 0));
}
