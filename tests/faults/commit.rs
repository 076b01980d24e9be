//! The connection is lost exactly at COMMIT, before the server has heard it and after: what is unknown is found out.

use loadtest::proxy::Cut;
use permitq::NewTask;
use permitq::store::Database;

use super::{CALL, STEADY, nothing_lost_or_doubled};
use crate::support::Db;
use crate::support::site::Site;

servers![
    a_finish_cut_at_commit_is_recorded_once,
    a_claim_cut_at_commit_is_handed_back,
    an_enqueue_cut_at_commit_says_that_it_does_not_know,
];

/// What a finish, a claim and an enqueue say, and nobody else.
const FINISH: &str = r#""outcome":"succeeded""#;
const CLAIM: &str = r#""hold":"#;
const ENQUEUE: &str = r#""source":"#;

async fn a_finish_cut_at_commit_is_recorded_once(db: Db) {
    let site = Site::new(db, 1).await;
    let proxy = site.proxy().await;
    let _member = site.behind(&proxy, "c", &STEADY);
    let mut tasks = Vec::new();
    for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
        tasks.extend(site.enqueue(2, CALL).await);
        site.in_flight(1).await;
        proxy.trap(FINISH, cut);
        nothing_lost_or_doubled(&site, &tasks, 1).await;
        assert!(!proxy.is_set(), "nothing was cut");
    }
    let succeeded = "SELECT count(*) FROM permitq_attempt WHERE outcome = 'succeeded'";
    assert_eq!(site.db.int(succeeded).await, 4);
    let late = "SELECT count(*) FROM permitq_attempt WHERE late_at IS NOT NULL";
    assert_eq!(site.db.int(late).await, 0, "told again, it was known to be recorded, not taken for lost");
}

async fn a_claim_cut_at_commit_is_handed_back(db: Db) {
    let site = Site::new(db, 1).await;
    let proxy = site.proxy().await;
    let _member = site.behind(&proxy, "c", &STEADY);
    let mut tasks = Vec::new();
    for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
        proxy.trap(CLAIM, cut);
        tasks.extend(site.enqueue(1, CALL).await);
        nothing_lost_or_doubled(&site, &tasks, 1).await;
        assert!(!proxy.is_set(), "nothing was cut");
    }
    // Not committed: nothing was claimed. Committed: the claim went back, at no cost.
    let [not, committed] = tasks.as_slice() else { panic!("{tasks:?}") };
    let log = site.db.store().attempts(*not).await.unwrap();
    assert_eq!(log.iter().map(|attempt| attempt.outcome.as_str()).collect::<Vec<_>>(), ["succeeded"]);
    let log = site.db.store().attempts(*committed).await.unwrap();
    let outcomes: Vec<_> = log.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["handed_back", "succeeded"]);
    assert_eq!(site.db.task(*committed).await.attempts, 1);
}

async fn an_enqueue_cut_at_commit_says_that_it_does_not_know(db: Db) {
    let site = Site::new(db, 1).await;
    let proxy = site.proxy().await;
    let url = proxy.url(site.db.url());
    let mut store = Database::new(&url).unwrap().store();
    let mut there = 0;
    for (cut, committed) in [(Cut::BeforeCommit, 0), (Cut::AfterCommit, 1)] {
        proxy.trap(ENQUEUE, cut);
        let error = store.enqueue(&[NewTask::new("call", "{}")]).await.unwrap_err();
        assert!(error.is_unknown(), "{error}");
        there += committed;
        assert_eq!(site.db.int("SELECT count(*) FROM permitq_task").await, there, "never repeated");

        proxy.trap(ENQUEUE, cut);
        let enqueue = ["enqueue", "--kind", "call", "--database", &url];
        let output = site.permitq(&enqueue).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("may be enqueued or not") && said.contains("permitq tasks"), "{said}");
        there += committed;
        assert_eq!(site.db.int("SELECT count(*) FROM permitq_task").await, there, "never repeated");
    }
    // With a key it may be repeated, and is found.
    proxy.trap(ENQUEUE, Cut::AfterCommit);
    let keyed = [NewTask::new("call", "{}").key("once")];
    assert!(store.enqueue(&keyed).await.unwrap_err().is_unknown());
    assert!(!store.enqueue(&keyed).await.unwrap()[0].created);
}
