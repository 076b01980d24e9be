//! Parents that end at once, and while somebody is about to wait for them: no child is forgotten. Upkeep, which would find
//! it, does not run here.

use futures_util::future::join_all;
use permitq::model::{NewTask, Outcome, State};
use tokio::spawn;

use crate::support::{Db, ended};

contract![parents_that_end_at_once_let_their_child_go, an_end_that_meets_a_new_child_is_told,];

async fn parents_that_end_at_once_let_their_child_go(db: Db) {
    const PARENTS: usize = 6;
    db.set_max(100).await;
    let mut consumers = Vec::new();
    for n in 0..PARENTS {
        consumers.push(db.consumer(&format!("c{n}")).await);
    }
    for round in 0..25 {
        let parents = db.enqueue(PARENTS).await;
        let children: Vec<_> = (0..3)
            .map(|_| parents.iter().fold(NewTask::new("child", "{}"), |child, parent| child.after(*parent)))
            .collect();
        db.store().enqueue(&children).await.unwrap();
        let ends = consumers.drain(..).map(|mut consumer| {
            spawn(async move {
                let claim = consumer.claim_one().await;
                consumer.finish(&[ended(claim, &Outcome::succeeded(None))]).await;
                consumer
            })
        });
        let ends: Vec<_> = ends.collect();
        consumers = join_all(ends).await.into_iter().map(Result::unwrap).collect();
        let waiting = db.int("SELECT count(*) FROM permitq_task WHERE state = 'blocked'").await;
        assert_eq!(waiting, 0, "round {round}");
    }
    let let_go = db.int("SELECT count(*) FROM permitq_task WHERE kind = 'child' AND state = 'pending'").await;
    assert_eq!(let_go, 75);
    db.holds(0).await;
}

async fn an_end_that_meets_a_new_child_is_told(db: Db) {
    db.set_max(100).await;
    let mut a = db.consumer("a").await;
    for round in 0..40 {
        let parent = db.enqueue(1).await[0];
        let claim = a.claim_one().await;
        let mut store = db.store();
        let producer = spawn(async move {
            let child = NewTask::new("child", "{}").after(parent);
            store.enqueue(&[child]).await.unwrap()[0].id
        });
        // The same exchange takes the next, as a hand-over would.
        let _next = db.enqueue(1).await;
        let swapped = a.exchange(&[ended(claim, &Outcome::succeeded(None))], 1).await;
        let child = producer.await.unwrap();
        assert_eq!(db.task(child).await.state, State::Pending, "round {round}");
        for claim in swapped.claims {
            a.finish(&[ended(claim, &Outcome::succeeded(None))]).await;
        }
    }
    db.holds(0).await;
}
