//! Tasks that wait for others: however those end, whoever waits is told, in the same transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use loadtest::servers::Server;
use permitq::clock::Clock;
use permitq::model::{NewTask, OnAbandon, Outcome, Parent, RunAt, State, Verdict, Why};
use permitq::store::{Cancelled, Error, Retried};
use permitq::upkeep::Upkeep;
use tokio::task::spawn_blocking;

use crate::support::{Consumer, Db, ended, ids, late, upkeep};

contract![
    a_task_waits_for_the_success_of_all_its_parents,
    a_dependent_fails_with_its_parent_and_names_it,
    however_a_parent_ends_nobody_waits_for_ever,
    a_hand_over_tells_those_who_wait,
    ends_that_are_there_already_count_at_once,
    unknown_parents_are_refused_and_nothing_is_written,
    a_key_that_is_there_keeps_its_own_parents,
    a_blocked_task_can_be_cancelled,
    a_retry_revives_its_dependents_where_that_is_asked_for,
    half_an_edge_is_named_and_mended,
    many_children_and_a_long_chain,
    random_graphs_end_as_the_model_says,
];

fn task() -> NewTask {
    NewTask::new("call", "{}")
}

async fn state(db: &Db, id: i64) -> State {
    db.task(id).await.state
}

/// Claims until it has this task.
async fn end(consumer: &mut Consumer, id: i64, outcome: &Outcome) {
    let claims = consumer.claim(20).await;
    let ends: Vec<_> = claims
        .into_iter()
        .map(|claim| {
            let back = Outcome::not_started("another one is meant");
            let outcome = if claim.attempt.task == id { outcome } else { &back };
            ended(claim, outcome)
        })
        .collect();
    assert!(ends.iter().any(|end| end.attempt.task == id), "task {id} cannot be claimed");
    consumer.finish(&ends).await;
}

fn failure() -> Outcome {
    Outcome { verdict: Verdict::Failed { error: "no".to_owned() }, ..Outcome::succeeded(None) }
}

async fn a_task_waits_for_the_success_of_all_its_parents(db: Db) {
    let mut a = db.consumer("a").await;
    let first = db.enqueue_one(task().key("first")).await;
    let second = db.enqueue_one(task()).await;
    let child = db.enqueue_one(task().after("first").after(second)).await;
    let later = NewTask { run_at: RunAt::In(Duration::from_hours(1)), ..task().after(child) };
    let later = db.enqueue_one(later).await;
    assert_eq!(db.int(&format!("SELECT waiting_for FROM permitq_task WHERE id = {child}")).await, 2);
    end(&mut a, second, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, child).await, State::Blocked);
    assert_eq!(db.int(&format!("SELECT waiting_for FROM permitq_task WHERE id = {child}")).await, 1);
    let (parents, children) = db.store().family(child).await.unwrap();
    let seen: Vec<_> = parents.iter().map(|one| (one.id, one.state(), one.open)).collect();
    assert_eq!(seen, [(first, "pending", true), (second, "succeeded", false)]);
    assert_eq!(children.iter().map(|one| one.id).collect::<Vec<_>>(), [later]);
    end(&mut a, first, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, child).await, State::Pending);
    end(&mut a, child, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, later).await, State::Scheduled, "it has an instant of its own");
    assert_eq!(db.int("SELECT count(*) FROM permitq_task WHERE dependents <> 0").await, 0);
    db.holds(0).await;
}

async fn a_dependent_fails_with_its_parent_and_names_it(db: Db) {
    let mut a = db.consumer("a").await;
    let parent = db.enqueue_one(task()).await;
    let other = db.enqueue_one(NewTask { priority: -1, ..task() }).await;
    let strict = db.enqueue_one(task().after(parent).after(other)).await;
    let any = db.enqueue_one(task().after_any_end(parent)).await;
    let grandchild = db.enqueue_one(task().after(strict)).await;
    let both = db.enqueue_one(task().after_any_end(strict).after_any_end(any)).await;
    end(&mut a, parent, &failure()).await;
    let failed = db.task(strict).await;
    assert_eq!((failed.state, failed.attempts), (State::Failed, 0));
    assert_eq!(failed.error.unwrap(), format!("upstream failed: task {parent} failed"));
    let failed = db.task(grandchild).await.error.unwrap();
    assert_eq!(failed, format!("upstream failed: task {strict} failed"));
    assert_eq!(state(&db, any).await, State::Pending, "any end would do");
    assert_eq!(state(&db, both).await, State::Blocked, "one of its parents has not ended");
    end(&mut a, any, &failure()).await;
    assert_eq!(state(&db, both).await, State::Pending);
    // The other parent of one that has failed already.
    end(&mut a, other, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, strict).await, State::Failed);
    assert_eq!(db.int("SELECT count(*) FROM permitq_dependency WHERE open = 1").await, 0);
    assert_eq!(db.store().tell_dependents(9).await.unwrap(), 0);
}

async fn pass(db: &Db) {
    Upkeep::new(&db.database, Clock::held(), upkeep(Duration::from_mins(1))).pass().await.unwrap();
}

/// Its claim is lost, and a person takes the late answer for the result.
async fn accept_late(db: &Db, a: &mut Consumer, parent: i64) {
    let attempt = a.claim_one().await.attempt;
    let again = "UPDATE permitq_task SET on_abandon = 'retry', max_attempts = 9";
    db.sql(&format!("{again} WHERE id = {parent}")).await;
    db.vanish(&a.id).await;
    assert_eq!(db.reclaim().await, [parent]);
    assert!(a.store.late(&a.id, &late(attempt, "done", true)).await.unwrap());
    assert_eq!(db.int("SELECT count(*) FROM permitq_task WHERE state = 'blocked'").await, 3);
    db.store().accept(parent, "ann").await.unwrap();
}

/// B040: by whichever path it dies, those who wait leave their waiting state by the stated policy.
async fn however_a_parent_ends_nobody_waits_for_ever(db: Db) {
    use State::{Cancelled, Failed, Pending};
    let ways = [
        "error",
        "unclear end",
        "reclaim of the last attempt",
        "cancel",
        "cancel while running",
        "delete",
        "hand",
        "expiry",
        "expiry seen by a claim",
        "accept",
    ];
    for way in ways {
        db.sql("UPDATE permitq_semaphore SET max_permits = 100").await;
        let mut a = db.consumer(way).await;
        let parent = db
            .enqueue_one(NewTask { max_attempts: Some(1), on_abandon: Some(OnAbandon::Fail), ..task() })
            .await;
        let strict = db.enqueue_one(task().after(parent)).await;
        let last = db.enqueue_one(task().after(strict)).await;
        let any = db.enqueue_one(task().after_any_end(parent)).await;
        let ends = match way {
            "error" => {
                end(&mut a, parent, &failure()).await;
                Failed
            }
            "unclear end" => {
                end(&mut a, parent, &Outcome::unclear(Why::Timeout, "silent")).await;
                Failed
            }
            "reclaim of the last attempt" => {
                let _ = a.claim_one().await;
                db.vanish(way).await;
                assert_eq!(db.reclaim().await, [parent]);
                Failed
            }
            "cancel" => {
                assert_eq!(db.store().cancel(parent, "ann").await.unwrap(), permitq::store::Cancelled::Done);
                Cancelled
            }
            "cancel while running" => {
                let _ = a.claim_one().await;
                db.store().cancel(parent, "ann").await.unwrap();
                Cancelled
            }
            "delete" => {
                db.sql(&format!("DELETE FROM permitq_task WHERE id = {parent}")).await;
                pass(&db).await;
                Failed
            }
            "hand" => {
                db.sql(&format!(
                    "UPDATE permitq_task SET state = 'cancelled', finished_at = created_at WHERE id = {parent}"
                ))
                .await;
                assert_eq!(state(&db, strict).await, State::Blocked);
                pass(&db).await;
                Cancelled
            }
            "expiry" | "expiry seen by a claim" => {
                db.sql(&format!("UPDATE permitq_task SET expires_at = created_at WHERE id = {parent}")).await;
                if way == "expiry" {
                    assert_eq!(db.store().expire(9).await.unwrap(), 1);
                } else {
                    assert!(a.claim(1).await.is_empty());
                    pass(&db).await;
                }
                Cancelled
            }
            _ => {
                accept_late(&db, &mut a, parent).await;
                State::Succeeded
            }
        };
        let expected = if ends == State::Succeeded { Pending } else { Failed };
        assert_eq!(state(&db, strict).await, expected, "{way}");
        let expected = if ends == State::Succeeded { State::Blocked } else { Failed };
        assert_eq!(state(&db, last).await, expected, "{way}");
        assert_eq!(state(&db, any).await, Pending, "{way}");
        assert!(db.store().strays(9).await.unwrap().is_empty(), "{way}");
        if way != "delete" && ends != State::Succeeded {
            let error = db.task(strict).await.error.unwrap();
            let how = if ends == Cancelled { "was cancelled" } else { "failed" };
            assert_eq!(error, format!("upstream failed: task {parent} {how}"), "{way}");
        }
        db.conservation().await;
        db.sql("DELETE FROM permitq_task").await;
        assert_eq!(db.int("SELECT count(*) FROM permitq_dependency").await, 0, "edges go with their tasks");
        db.sql("DELETE FROM permitq_cooling").await;
        db.sql("UPDATE permitq_semaphore SET in_use = 0").await;
    }
}

async fn a_hand_over_tells_those_who_wait(db: Db) {
    let mut a = db.consumer("a").await;
    let parent = db.enqueue_one(task()).await;
    let child = db.enqueue_one(NewTask { priority: 5, ..task().after(parent) }).await;
    let plain = db.enqueue_one(task()).await;
    let claim = a.claim_one().await;
    assert_eq!(claim.attempt.task, parent);
    // The child that this very end lets go comes before what was due already.
    let swapped = a.exchange(&[ended(claim, &Outcome::succeeded(None))], 1).await;
    assert_eq!(swapped.claims.iter().map(|claim| claim.attempt.task).collect::<Vec<_>>(), [child]);
    assert_eq!((state(&db, parent).await, state(&db, plain).await), (State::Succeeded, State::Pending));
    db.holds(1).await;
}

async fn ends_that_are_there_already_count_at_once(db: Db) {
    let mut a = db.consumer("a").await;
    let good = db.enqueue_one(task()).await;
    end(&mut a, good, &Outcome::succeeded(None)).await;
    let bad = db.enqueue_one(task().key("bad")).await;
    end(&mut a, bad, &failure()).await;
    let open = db.enqueue_one(task()).await;
    let of = |task: NewTask, parents: &[i64]| parents.iter().fold(task, |task, parent| task.after(*parent));
    assert_eq!(state(&db, db.enqueue_one(of(task(), &[good])).await).await, State::Pending);
    assert_eq!(state(&db, db.enqueue_one(of(task(), &[good, open])).await).await, State::Blocked);
    let failed = db.task(db.enqueue_one(of(task().after("bad"), &[good, open])).await).await;
    assert_eq!(
        (failed.state, failed.error.unwrap()),
        (State::Failed, format!("upstream failed: task {bad} failed"))
    );
    assert_eq!(state(&db, db.enqueue_one(task().after_any_end("bad")).await).await, State::Pending);
    // The same parent twice: the stricter counts, once.
    let twice = db.enqueue_one(task().after_any_end(open).after(open)).await;
    assert_eq!(db.int(&format!("SELECT waiting_for FROM permitq_task WHERE id = {twice}")).await, 1);
    end(&mut a, open, &failure()).await;
    assert_eq!(state(&db, twice).await, State::Failed);
}

async fn unknown_parents_are_refused_and_nothing_is_written(db: Db) {
    let there = db.enqueue_one(task()).await;
    let before = db.changes().await;
    let mut store = db.store();
    for (bad, words) in [
        (task().after(999_999), "there is no task 999999 to wait for"),
        (task().after(there).after("nowhere"), "with the business key \"nowhere\""),
        (task().after(Parent::Nth(1)), "does not stand before it"),
    ] {
        let refused = store.enqueue(&[task(), bad]).await.unwrap_err();
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
        assert!(refused.to_string().contains(words), "{refused}");
    }
    assert_eq!(db.changes().await, before);
}

async fn a_key_that_is_there_keeps_its_own_parents(db: Db) {
    let mut store = db.store();
    let chain =
        [task().key("a"), task().key("b").after(Parent::Nth(0)), task().key("c").after(Parent::Nth(1))];
    let first = ids(&store.enqueue(&chain).await.unwrap());
    let again = store.enqueue(&chain).await.unwrap();
    assert!(again.iter().all(|one| !one.created));
    assert_eq!(ids(&again), first);
    let free = db.enqueue_one(task().key("free")).await;
    // It is there without parents, and stays so; the new one waits for it.
    let more = [task().key("free").after(first[0]), task().after(Parent::Nth(0)), task().key("new")];
    let more = ids(&store.enqueue(&more).await.unwrap());
    assert_eq!(
        (more[0], state(&db, free).await, state(&db, more[1]).await),
        (free, State::Pending, State::Blocked)
    );
    assert_eq!(db.int("SELECT count(*) FROM permitq_dependency").await, 3);
}

async fn a_blocked_task_can_be_cancelled(db: Db) {
    let mut a = db.consumer("a").await;
    let parent = db.enqueue_one(task()).await;
    let child = db.enqueue_one(task().after(parent)).await;
    let grandchild = db.enqueue_one(task().after(child)).await;
    assert_eq!(db.store().cancel(child, "ann").await.unwrap(), Cancelled::Done);
    assert_eq!(
        db.task(grandchild).await.error.unwrap(),
        format!("upstream failed: task {child} was cancelled")
    );
    end(&mut a, parent, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, child).await, State::Cancelled);
}

async fn a_retry_revives_its_dependents_where_that_is_asked_for(db: Db) {
    let mut a = db.consumer("a").await;
    let parent = db.enqueue_one(task()).await;
    let other = db.enqueue_one(NewTask { priority: -1, ..task() }).await;
    let child = db.enqueue_one(task().after(parent).after(other)).await;
    let grandchild = db.enqueue_one(task().after(child)).await;
    let bad = db.enqueue_one(NewTask { priority: 1, ..task() }).await;
    let doomed = db.enqueue_one(task().after(parent).after(bad)).await;
    end(&mut a, bad, &failure()).await;
    end(&mut a, parent, &failure()).await;
    let mut store = db.store();
    assert_eq!(store.retry(parent, "ann").await.unwrap(), Retried::Done);
    assert_eq!((state(&db, child).await, state(&db, grandchild).await), (State::Failed, State::Failed));
    end(&mut a, parent, &failure()).await;
    assert_eq!(store.retry_with_dependents(parent, "ann").await.unwrap(), (Retried::Done, 2));
    assert_eq!((state(&db, child).await, state(&db, grandchild).await), (State::Blocked, State::Blocked));
    assert_eq!(state(&db, doomed).await, State::Failed, "another parent of it has failed");
    assert!(store.strays(9).await.unwrap().is_empty());
    end(&mut a, other, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, child).await, State::Blocked);
    end(&mut a, parent, &Outcome::succeeded(None)).await;
    end(&mut a, child, &Outcome::succeeded(None)).await;
    assert_eq!(state(&db, grandchild).await, State::Pending);
}

/// B042: a dependency on nothing, and other half-written states.
async fn half_an_edge_is_named_and_mended(db: Db) {
    let table = [
        ("DELETE FROM permitq_task WHERE biz_key = 'parent'", State::Failed),
        ("DELETE FROM permitq_dependency", State::Pending),
        ("UPDATE permitq_dependency SET open = 0", State::Pending),
        ("UPDATE permitq_task SET waiting_for = 7 WHERE biz_key = 'child'", State::Blocked),
        (
            "UPDATE permitq_task SET state = 'succeeded', finished_at = created_at, dependents = 0
              WHERE biz_key = 'parent'",
            State::Pending,
        ),
        ("INSERT INTO permitq_task (kind, state, waiting_for) VALUES ('call', 'blocked', 2)", State::Blocked),
    ];
    for (edit, then) in table {
        db.enqueue_one(task().key("parent")).await;
        let child = db.enqueue_one(task().key("child").after("parent")).await;
        assert!(db.store().audit().await.unwrap().impossible.is_empty());
        db.sql(edit).await;
        let named = db.store().audit().await.unwrap().impossible;
        assert_eq!(named.len(), 1, "{edit}: {named:?}");
        pass(&db).await;
        assert_eq!(db.store().audit().await.unwrap().impossible, [] as [String; 0], "{edit}");
        assert_eq!(state(&db, child).await, then, "{edit}");
        db.sql("DELETE FROM permitq_task").await;
    }
}

async fn many_children_and_a_long_chain(db: Db) {
    let mut a = db.consumer("a").await;
    let root = db.enqueue_one(task()).await;
    let mut store = db.store();
    // As deep as wide: 2,500 of each.
    let wide = ids(&store.enqueue(&vec![task().after(root); 2500]).await.unwrap());
    let link = |n: usize| if n == 0 { task().after(root) } else { task().after(Parent::Nth(n - 1)) };
    let deep = ids(&store.enqueue(&(0..2500).map(link).collect::<Vec<_>>()).await.unwrap());
    end(&mut a, root, &failure()).await;
    let failed = "SELECT count(*) FROM permitq_task WHERE state = 'failed'";
    assert!(db.int(failed).await < 5001, "one transaction tells a bounded number");
    pass(&db).await;
    assert_eq!(db.int(failed).await, 5001);
    let last = db.task(*deep.last().unwrap()).await.error.unwrap();
    assert_eq!(last, format!("upstream failed: task {} failed", deep[deep.len() - 2]));
    assert_eq!(db.int("SELECT count(*) FROM permitq_task WHERE dependents = 1").await, 0);
    assert_eq!(wide.len(), 2500);
}

/// A small graph whose tasks end in any order and in any way, against the rule in its simplest form.
async fn random_graphs_end_as_the_model_says(db: Db) {
    db.set_max(100).await;
    let mut a = db.consumer("a").await;
    for round in 0..12 {
        let mut random = fastrand::Rng::with_seed(round);
        let size = random.usize(3..12);
        let mut edges: Vec<Vec<(usize, bool)>> = Vec::new();
        for n in 0..size {
            let mut parents: BTreeMap<usize, bool> = BTreeMap::new();
            for _ in 0..random.usize(0..4) {
                if n > 0 {
                    parents.insert(random.usize(0..n), random.bool());
                }
            }
            edges.push(parents.into_iter().collect());
        }
        // Some of it is enqueued when the rest is under way.
        let cut = random.usize(1..=size);
        let mut all: Vec<i64> = Vec::new();
        let mut model: Vec<State> = Vec::new();
        let task = |n: usize, all: &[i64]| {
            edges[n].iter().fold(self::task(), |task, &(parent, any_end)| {
                let parent =
                    all.get(parent).map_or_else(|| Parent::Nth(parent - all.len()), |id| Parent::Task(*id));
                if any_end { task.after_any_end(parent) } else { task.after(parent) }
            })
        };
        loop {
            if all.len() < size && (all.is_empty() || random.bool()) {
                let upto = if all.is_empty() { cut } else { size };
                let new: Vec<_> = (all.len()..upto).map(|n| task(n, &all)).collect();
                all.extend(ids(&db.store().enqueue(&new).await.unwrap()));
                model.resize(upto, State::Blocked);
            }
            // To the fixed point: parents stand before their children.
            for n in 0..model.len() {
                if model[n] == State::Blocked {
                    let over = |&(parent, _): &(usize, bool)| model[parent].is_final();
                    let bad = |&(parent, any_end): &(usize, bool)| {
                        !any_end && matches!(model[parent], State::Failed | State::Cancelled)
                    };
                    if edges[n].iter().any(bad) {
                        model[n] = State::Failed;
                    } else if edges[n].iter().all(over) {
                        model[n] = State::Pending;
                    }
                }
            }
            for (n, id) in all.iter().enumerate() {
                assert_eq!(state(&db, *id).await, model[n], "seed {round}, task {n} of {edges:?}");
            }
            assert!(db.store().strays(9).await.unwrap().is_empty());
            let open: Vec<_> = (0..model.len()).filter(|n| !model[*n].is_final()).collect();
            let Some(&n) = open.get(random.usize(0..open.len().max(1))) else {
                if all.len() < size {
                    continue;
                }
                break;
            };
            model[n] = match random.u8(0..3) {
                0 => {
                    db.store().cancel(all[n], "ann").await.unwrap();
                    State::Cancelled
                }
                way if model[n] == State::Pending => {
                    let outcome = if way == 1 { failure() } else { Outcome::succeeded(None) };
                    end(&mut a, all[n], &outcome).await;
                    if way == 1 { State::Failed } else { State::Succeeded }
                }
                _ => model[n],
            };
        }
    }
}

/// As the server counts them: BEGIN, log, settle, permits, COMMIT. With a child: settle once more, and waiters, tell, close, told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_no_dependents_pays_no_statement() {
    let server = spawn_blocking(|| Server::mariadb(false)).await.unwrap();
    let db = Db::alone_on(&server).await;
    let mut a = db.consumer("a").await;
    let questions = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
                      WHERE variable_name = 'Questions'";
    let mut costs = Vec::new();
    for round in 0..3 {
        let parent = db.enqueue(1).await[0];
        if round == 2 {
            db.enqueue_one(task().after(parent)).await;
        }
        let claim = a.claim_one().await;
        let before = db.int(questions).await;
        a.finish(&[ended(claim, &Outcome::succeeded(None))]).await;
        // The count is a statement, too.
        costs.push(db.int(questions).await - before - 1);
    }
    assert_eq!(costs[1..], [5, 5 + 5]);
}
