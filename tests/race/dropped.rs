//! Futures dropped anywhere: the same store works on, nothing that was committed is lost, and what was claimed without
//! an answer is visible to its owner.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use permitq::model::{Attempt, Claim, Ended, NewTask, Outcome, Retry, State, settle};
use permitq::store::{Enqueued, Orphan, Peak, Recorded};
use tokio::time::timeout;

use crate::support::{Db, ended};

contract![a_store_survives_its_dropped_futures,];

/// Drops the future at its `n`-th wait for the database: asked, and not answered yet. `None` where that came before
/// its end.
async fn up_to<T>(mut n: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if n == 0 => Poll::Ready(None),
        Poll::Pending => {
            n -= 1;
            Poll::Pending
        }
    })
    .await
}

/// A claim whose answer never arrived goes back.
fn hand_back(orphan: Orphan) -> Ended {
    let settlement = settle(orphan.standing, &Outcome::not_started("no answer"), &Retry::default(), 0.0);
    Ended {
        attempt: orphan.attempt,
        semaphore: orphan.semaphore,
        called_after: None,
        status: None,
        settlement,
        signal: None,
    }
}

async fn a_store_survives_its_dropped_futures(db: Db) {
    let mut a = db.consumer("a").await;
    let mut answered: HashMap<String, i64> = HashMap::new();
    let mut running: Vec<Claim> = Vec::new();
    let mut ends: Vec<Ended> = Vec::new();
    let (mut dropped, mut keys) = (0, 0);
    for round in 0..300 {
        if round % 3 == 0 {
            let batch: Vec<_> =
                (0..2).map(|n| NewTask::new("call", "{}").key(format!("key-{}", keys + n))).collect();
            // A key makes it safe to repeat: the next round sends the same again.
            match up_to(fastrand::usize(0..16), a.store.enqueue(&batch)).await {
                None => dropped += 1,
                Some(answers) => {
                    keys += 2;
                    for (task, Enqueued { id, .. }) in batch.iter().zip(answers.unwrap()) {
                        answered.insert(task.biz_key.clone().unwrap(), id);
                    }
                }
            }
        } else {
            ends.extend(running.drain(..).map(|claim| ended(claim, &Outcome::succeeded(None))));
            match up_to(fastrand::usize(0..24), a.try_exchange(&ends, 2)).await {
                None => dropped += 1,
                Some(got) => {
                    let got = got.unwrap();
                    // Sent again after a lost answer or not: it is recorded, and it was never lost.
                    assert!(got.recorded.iter().all(|recorded| *recorded == Recorded::Done));
                    ends.clear();
                    running = got.claims;
                }
            }
        }
        db.conservation().await;
    }
    assert!(dropped > 30, "only {dropped} of 300 were dropped");
    assert!(keys > 30, "only {keys} were answered");

    // Everything that was committed comes to its end, what nobody heard of included.
    let all_done = async {
        ends.extend(running.drain(..).map(|claim| ended(claim, &Outcome::succeeded(None))));
        loop {
            let known: Vec<Attempt> = ends.iter().map(|ended| ended.attempt).collect();
            let orphans = a.store.running("a").await.unwrap();
            ends.extend(orphans.into_iter().filter(|o| !known.contains(&o.attempt)).map(hand_back));
            let got = a.exchange(&ends, 4).await;
            assert!(got.recorded.iter().all(|recorded| *recorded == Recorded::Done));
            ends = got.claims.into_iter().map(|claim| ended(claim, &Outcome::succeeded(None))).collect();
            let states = db.store().states(None).await.unwrap();
            if states.iter().all(|(state, _)| *state == State::Succeeded) {
                break;
            }
        }
    };
    timeout(Duration::from_mins(1), all_done).await.expect("all tasks end");
    db.holds(0).await;
    for (key, id) in answered {
        assert_eq!(db.task(id).await.biz_key, Some(key));
    }
    let attempts = db.int("SELECT count(*) FROM permitq_attempt WHERE outcome = 'succeeded'").await;
    assert_eq!(attempts, db.int("SELECT count(*) FROM permitq_task").await, "one success each");
    assert_eq!(db.store().peak("default", Peak::EVER).await.unwrap().overruns, 0);
}
