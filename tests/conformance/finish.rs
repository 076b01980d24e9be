//! Every way out is one finish: fenced, logged, and the permit freed or cooling.

use std::time::Duration;

use loadtest::servers::Server;
use permitq::model::{End, Ended, NewTask, OnAbandon, Outcome, State, Verdict, Why};
use permitq::store::{Policy, Recorded};
use tokio::task::spawn_blocking;

use crate::support::{Db, ended, late, policy};

contract![
    every_outcome_leaves_task_log_cooling_and_counter_right,
    a_last_attempt_ends_failed,
    a_hand_back_costs_no_attempt,
    a_repeated_finish_says_done_and_frees_once,
    late_finisher_releases_nothing,
    a_late_report_changes_no_final_state,
    nobody_finishes_the_claim_of_another,
    a_batch_records_what_is_ours_and_loses_the_rest,
    any_text_can_be_recorded,
    a_deleted_task_is_lost_to_its_owner,
];

/// What a settled end must show: state, attempts used, the log's outcome, `run_at` after the end.
type Expected = (State, i64, &'static str, Wait);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wait {
    /// It keeps the `run_at` it had, or is due at once.
    Not,
    /// Five seconds from the end.
    Backoff,
    /// Until the given-up call must be over.
    Cooling,
}

fn outcome(verdict: &Verdict, end: End) -> Outcome {
    Outcome { verdict: verdict.clone(), end, status: Some(503) }
}

async fn every_outcome_leaves_task_log_cooling_and_counter_right(db: Db) {
    use OnAbandon::{Fail, Retry, RetryAfterCooling};
    use State::{Cancelled, Failed, Pending, Scheduled, Succeeded};
    let error = || "why".to_owned();
    let unclear = End::Unclear(Why::Timeout);
    let retry = Verdict::Retry { error: error(), after: None };
    let back = Verdict::HandedBack { error: error() };
    let abandoned = Verdict::Abandoned { error: error() };
    let failed = Verdict::Failed { error: error() };
    let cancelled = Verdict::Cancelled { error: error() };
    let succeeded = Verdict::Succeeded { result: Some("42".into()) };
    let table: [(&Verdict, End, OnAbandon, Expected); 15] = [
        (&succeeded, End::Clear, Retry, (Succeeded, 1, "succeeded", Wait::Not)),
        (&succeeded, unclear, Retry, (Succeeded, 1, "succeeded", Wait::Not)),
        (&succeeded, unclear, Fail, (Succeeded, 1, "succeeded", Wait::Not)),
        (&failed, End::Clear, Retry, (Failed, 1, "failed", Wait::Not)),
        (&failed, unclear, RetryAfterCooling, (Failed, 1, "failed", Wait::Not)),
        (&cancelled, unclear, Retry, (Cancelled, 1, "cancelled", Wait::Not)),
        (&retry, End::Clear, Retry, (Scheduled, 1, "failed", Wait::Backoff)),
        (&retry, End::Clear, Fail, (Scheduled, 1, "failed", Wait::Backoff)),
        (&retry, unclear, Retry, (Scheduled, 1, "failed", Wait::Backoff)),
        (&retry, unclear, RetryAfterCooling, (Scheduled, 1, "failed", Wait::Cooling)),
        (&retry, unclear, Fail, (Failed, 1, "failed", Wait::Not)),
        (&back, End::Clear, Fail, (Pending, 0, "handed_back", Wait::Not)),
        (&back, unclear, RetryAfterCooling, (Scheduled, 0, "handed_back", Wait::Cooling)),
        (&abandoned, unclear, Retry, (Pending, 1, "abandoned", Wait::Not)),
        (&abandoned, unclear, Fail, (Failed, 1, "abandoned", Wait::Not)),
    ];
    let mut a = db.consumer("a").await;
    for (verdict, end, on_abandon, expected) in table {
        let case = format!("{verdict:?} {end:?} {on_abandon}");
        let kind = format!("case-{}", db.int("SELECT count(*) FROM permitq_task").await);
        let id = db.enqueue_one(NewTask { on_abandon: Some(on_abandon), ..NewTask::new(&*kind, "{}") }).await;
        a.policies = vec![policy(&kind)];
        let claim = a.claim_one().await;
        let until = db.task(id).await.until.unwrap();
        let claimed = db.task(id).await.started_at.unwrap();
        assert_eq!(a.finish(&[ended(claim, &outcome(verdict, end))]).await, [Recorded::Done], "{case}");

        let (task, log) = (db.task(id).await, db.store().attempts(id).await.unwrap().remove(0));
        let wait = match task.run_at {
            at if at == until => Wait::Cooling,
            at if at <= log.ended_at + Duration::from_secs(1) => Wait::Not,
            at if (5..6).contains(&at.duration_since(log.ended_at).as_secs()) => Wait::Backoff,
            at => panic!("{case}: run_at {at}"),
        };
        assert_eq!((task.state, i64::from(task.attempts), &*log.outcome, wait), expected, "{case}");
        assert_eq!((task.consumer, task.until, task.claim_no), (None, None, 1), "{case}");
        assert_eq!(task.finished_at.is_some(), task.state.is_final(), "{case}");
        assert_eq!(task.result.is_some(), task.state == Succeeded, "{case}");
        assert_eq!(task.error.is_some(), task.state != Succeeded, "{case}");

        assert_eq!((log.claim_no, &*log.consumer, &*log.ended_by), (1, "a", "a"), "{case}");
        assert_eq!((log.claimed_at, log.status), (claimed, Some(503)), "{case}");
        assert_eq!(log.called_at, Some(claimed + Duration::from_secs(2)), "{case}");
        let cools = matches!(end, End::Unclear(_));
        assert_eq!(log.permit_released_at, (!cools).then_some(log.ended_at), "{case}");

        db.holds(i64::from(cools)).await;
        let holders = db.store().holders().await.unwrap();
        assert_eq!(holders.len(), usize::from(cools), "{case}");
        if let Some(holder) = holders.first() {
            assert_eq!((holder.task, holder.claim_no), (Some(id), Some(1)), "{case}");
            assert_eq!((holder.consumer.as_deref(), holder.why.as_deref()), (Some("a"), Some("timeout")));
            assert_eq!(holder.until, until, "{case}");
        }
        assert_eq!(db.cool_down().await, i64::from(cools), "{case}");
        db.holds(0).await;
    }
}

async fn a_last_attempt_ends_failed(db: Db) {
    let id = db.enqueue_one(NewTask { max_attempts: Some(2), ..NewTask::new("call", "{}") }).await;
    let mut a = db.consumer("a").await;
    for (attempt, state) in [(1, State::Scheduled), (2, State::Failed)] {
        let claim = a.claim_one().await;
        assert_eq!(claim.standing.attempts, attempt);
        a.finish(&[ended(claim, &Outcome::retry("no", None))]).await;
        assert_eq!(db.task(id).await.state, state);
        db.age("permitq_task", "run_at", Duration::from_mins(1), "1 = 1").await;
        db.store().promote(1).await.unwrap();
    }
    assert!(a.claim(1).await.is_empty());
    assert_eq!(db.task(id).await.error.as_deref(), Some("no (attempt 2 of 2)"));
}

async fn a_hand_back_costs_no_attempt(db: Db) {
    let id = db.enqueue_one(NewTask { max_attempts: Some(1), ..NewTask::new("call", "{}") }).await;
    let mut a = db.consumer("a").await;
    for claim_no in 1..4 {
        let claim = a.claim_one().await;
        assert_eq!((claim.attempt.claim_no, claim.standing.attempts), (claim_no, 1));
        a.finish(&[ended(claim, &Outcome::not_started("window"))]).await;
        db.holds(0).await;
    }
    assert_eq!((db.task(id).await.state, db.task(id).await.attempts), (State::Pending, 0));
}

async fn a_repeated_finish_says_done_and_frees_once(db: Db) {
    db.enqueue(3).await;
    let mut a = db.consumer("a").await;
    let [one, two, _three] = a.claim(3).await.try_into().unwrap();
    let done =
        [ended(one, &Outcome::succeeded(None)), ended(two, &Outcome::unclear(Why::Connection, "reset"))];
    for _ in 0..3 {
        assert_eq!(a.finish(&done).await, [Recorded::Done; 2]);
        db.holds(2).await;
    }
}

async fn late_finisher_releases_nothing(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let late = ended(a.claim_one().await, &Outcome::succeeded(Some("late".into())));
    db.vanish("a").await;
    assert_eq!(db.reclaim().await, [id]);
    let mut b = db.consumer("b").await;
    let current = b.claim_one().await;
    db.holds(2).await;
    let before = db.task(id).await;
    for _ in 0..2 {
        assert_eq!(a.finish(std::slice::from_ref(&late)).await, [Recorded::Lost]);
        db.holds(2).await;
    }
    assert_eq!(db.task(id).await, before);
    assert_eq!(b.finish(&[ended(current, &Outcome::succeeded(None))]).await, [Recorded::Done]);
    db.holds(1).await;
}

/// Whatever the frozen first attempt reports in the end, the second one's word stands.
async fn a_late_report_changes_no_final_state(db: Db) {
    let late =
        [Outcome::retry("late", None), Outcome::failed("late"), Outcome::succeeded(Some("late".into()))];
    for last in [Outcome::retry("no", None), Outcome::failed("no"), Outcome::succeeded(Some("42".into()))] {
        for late in &late {
            let id = db.enqueue_one(NewTask { max_attempts: Some(2), ..NewTask::new("call", "{}") }).await;
            let mut first = db.consumer(&format!("first {id}")).await;
            let lost = ended(first.claim_one().await, late);
            db.vanish(&first.id).await;
            assert_eq!(db.reclaim().await, [id]);
            let mut second = db.consumer(&format!("second {id}")).await;
            let done = ended(second.claim_one().await, &last);
            assert_eq!(second.finish(&[done]).await, [Recorded::Done]);
            let (before, log) = (db.task(id).await, db.store().attempts(id).await.unwrap());
            assert!(before.state.is_final() && before.attempts == 2, "{before:?}");
            assert_eq!(first.finish(std::slice::from_ref(&lost)).await, [Recorded::Lost]);
            assert_eq!((db.task(id).await, db.store().attempts(id).await.unwrap()), (before.clone(), log));
            // It is evidence, and no more.
            assert!(first.store.late(&first.id, &lost).await.unwrap());
            assert_eq!(db.task(id).await, before);
            db.holds(0).await;
        }
    }
}

async fn nobody_finishes_the_claim_of_another(db: Db) {
    let id = db.enqueue(1).await[0];
    let (mut a, mut b) = (db.consumer("a").await, db.consumer("b").await);
    let done = [ended(a.claim_one().await, &Outcome::succeeded(None))];
    assert_eq!(b.finish(&done).await, [Recorded::Lost]);
    assert_eq!(db.task(id).await.state, State::Running);
    assert_eq!(a.finish(&done).await, [Recorded::Done]);
    assert_eq!(b.finish(&done).await, [Recorded::Lost]);
    db.holds(0).await;
}

async fn a_batch_records_what_is_ours_and_loses_the_rest(db: Db) {
    let tasks = db.enqueue(6).await;
    let mut a = db.consumer("a").await;
    let done: Vec<Ended> =
        a.claim(3).await.into_iter().map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
    db.store().cancel(tasks[1], "ann").await.unwrap();
    let got = a.exchange(&done, 2).await;
    assert_eq!(got.recorded, [Recorded::Done, Recorded::Lost, Recorded::Done]);
    assert_eq!(got.claims.len(), 2);
    db.holds(3).await;
    let states: Vec<State> = [db.task(tasks[0]).await, db.task(tasks[1]).await, db.task(tasks[2]).await]
        .map(|task| task.state)
        .to_vec();
    assert_eq!(states, [State::Succeeded, State::Cancelled, State::Succeeded]);
}

async fn any_text_can_be_recorded(db: Db) {
    let big = "🦀".repeat(50_000);
    // (said, kept): no database keeps a NUL in a text.
    let table = [
        (r#"quote ' " \ { 💥 \u0000"#, r#"quote ' " \ { 💥 \u0000"#),
        (&*big, &*big),
        ("a\0b\u{1}", "a\u{fffd}b\u{1}"),
        ("", ""),
    ];
    let mut a = db.consumer("a").await;
    a.policies = vec![Policy { max_attempts: 9, ..policy("call") }];
    for (said, kept) in table {
        let (failed, done) = (db.enqueue(1).await[0], db.enqueue(1).await[0]);
        let ends: Vec<Ended> = a
            .claim(2)
            .await
            .into_iter()
            .map(|claim| {
                let outcome = if claim.attempt.task == failed {
                    Outcome { end: End::Unclear(Why::Status), ..Outcome::failed(said) }
                } else {
                    Outcome::succeeded(Some(said.to_owned()))
                };
                ended(claim, &outcome)
            })
            .collect();
        assert_eq!(a.finish(&ends).await, [Recorded::Done; 2]);
        assert_eq!(db.task(failed).await.error.as_deref(), Some(kept));
        assert_eq!(db.task(done).await.result.as_deref(), Some(kept));
        assert!(db.store().late("a", &late(ends[0].attempt, said, true)).await.unwrap());
        let log = db.store().attempts(failed).await.unwrap().remove(0);
        assert_eq!((log.error.as_deref(), log.late_answer.as_deref()), (Some(kept), Some(kept)));
        db.holds(0).await;
    }
}

async fn a_deleted_task_is_lost_to_its_owner(db: Db) {
    let id = db.enqueue(1).await[0];
    let mut a = db.consumer("a").await;
    let done = ended(a.claim_one().await, &Outcome::succeeded(None));
    db.sql(&format!("DELETE FROM permitq_task WHERE id = {id}")).await;
    assert_eq!(a.finish(&[done]).await, [Recorded::Lost]);
    assert_eq!(db.in_use().await, 1, "its call may still run: that permit is the auditor's");
}

/// Whatever a server's own character set is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_text_can_be_recorded_in_a_latin1_database() {
    for charset in ["latin1", "utf8mb3"] {
        let option = format!("--character-set-server={charset}");
        let server = spawn_blocking(move || Server::mariadb_with(false, &[&option])).await.unwrap();
        let db = Db::alone_on(&server).await;
        let own = "SELECT count(*) FROM information_schema.schemata
                    WHERE schema_name = DATABASE() AND default_character_set_name = ";
        assert_eq!(db.int(&format!("{own}'{charset}'")).await, 1);
        any_text_can_be_recorded(db).await;
    }
}
