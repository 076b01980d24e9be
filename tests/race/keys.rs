//! Many producers of the same business keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use permitq::model::NewTask;
use tokio::spawn;
use tokio::task::yield_now;

use crate::support::Db;

contract![producers_of_the_same_keys_make_each_once, a_key_whose_task_goes_away_meanwhile_is_new,];

/// Each in its own order, in batches: also those that meet crosswise come through.
async fn producers_of_the_same_keys_make_each_once(db: Db) {
    for round in 0..3 {
        let producers = (0..8).map(|_| {
            let mut store = db.store();
            spawn(async move {
                let mut keys: Vec<_> = (0..100).map(|n| format!("{round}/{n}")).collect();
                fastrand::shuffle(&mut keys);
                let mut verdicts = Vec::new();
                for batch in keys.chunks(10) {
                    let tasks: Vec<_> = batch.iter().map(|key| NewTask::new("call", "{}").key(key)).collect();
                    let answers = store.enqueue(&tasks).await.unwrap();
                    verdicts.extend(batch.iter().cloned().zip(answers));
                }
                verdicts
            })
        });
        let mut ids: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        let (mut created, mut existing) = (0, 0);
        for verdicts in join_all(producers).await {
            for (key, answer) in verdicts.unwrap() {
                ids.entry(key).or_default().insert(answer.id);
                *(if answer.created { &mut created } else { &mut existing }) += 1;
            }
        }
        assert_eq!((created, existing), (100, 700));
        assert!(ids.values().all(|ids| ids.len() == 1), "{ids:?}");
        assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 100 * (round + 1));
    }
}

/// Somebody deletes it, again and again, between the insert that finds it and the read of its id.
async fn a_key_whose_task_goes_away_meanwhile_is_new(db: Db) {
    let over = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..10)
        .map(|_| {
            let mut store = db.store();
            spawn(async move {
                let mut created = 0;
                for _ in 0..40 {
                    let answer = store.enqueue(&[NewTask::new("call", "{}").key("k")]).await.unwrap()[0];
                    assert!(answer.id > 0);
                    created += u64::from(answer.created);
                    yield_now().await;
                }
                created
            })
        })
        .collect();
    let purge = async {
        let mut gone = 0;
        while !over.load(Ordering::SeqCst) {
            gone += db.try_sql("DELETE FROM permitq_task WHERE biz_key = 'k'").await.unwrap_or(0);
            yield_now().await;
        }
        gone
    };
    let created = async {
        let created = join_all(producers).await.into_iter().map(Result::unwrap).sum::<u64>();
        over.store(true, Ordering::SeqCst);
        created
    };
    let (created, gone) = tokio::join!(created, purge);
    let left = u64::try_from(db.int("SELECT count(*) FROM permitq_task").await).unwrap();
    assert_eq!(created, gone + left, "each row was somebody's");
    assert!(gone > 0, "nothing went away");
}
