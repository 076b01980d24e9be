//! Calls that are given up.

use std::time::Duration;

use permitq::downstream::stub::StubOptions;
use permitq::model::{NewTask, State};

use crate::support::Db;
use crate::support::site::{BRIEF, Site};

contract! {
    a_call_that_timed_out_counts_until_it_must_be_over,
}

/// The downstream knows nothing of our timeouts, and works on.
async fn a_call_that_timed_out_counts_until_it_must_be_over(db: Db) {
    let site = Site::new(db, 4).await;
    let tasks = site.enqueue(8, Duration::from_millis(900)).await;
    let settings = [
        &BRIEF[..],
        &[("PERMITQ_DOWNSTREAM__DEFAULT__READ_TIMEOUT", "300ms"), ("PERMITQ_RETRY__MAX_ATTEMPTS", "2")],
    ]
    .concat();
    let _fleet: Vec<_> =
        (0..2).map(|n| site.start_with(&["run", "--name", &format!("c{n}")], &settings)).collect();
    site.watched(site.settled()).await;
    site.cap_held(4).await;
    let seen = site.stub.summary();
    assert_eq!((seen.calls, seen.callers_gone), (16, 16));
    for task in tasks {
        let task = site.db.task(task).await;
        assert_eq!((task.state, task.attempts), (State::Failed, 2));
        assert!(task.error.unwrap().contains("(read_timeout)"));
    }
}

/// `read_timeout` bounds silence, a task's own timeout and `call_timeout` the whole call; none stands in for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_limit_cuts_what_it_is_for() {
    const SILENT: &str = r#"{"ms": 1500}"#;
    // An answer that begins at once and ends late.
    const DRIPS: &str = r#"{"ms": 1500, "fault": "drip"}"#;
    const DRIPS_ON: &str = r#"{"ms": 6000, "fault": "drip"}"#;
    let own = |seconds: f64| Some(Duration::from_secs_f64(seconds));
    // (read_timeout, [(payload, the task's own timeout, why it failed)])
    let table = [
        (
            "500ms",
            [
                (SILENT, None, Some("no answer for 500ms (read_timeout)")),
                (SILENT, own(30.0), Some("no answer for 500ms (read_timeout)")),
                (DRIPS, None, None),
                (DRIPS, own(30.0), None),
                (DRIPS, own(0.3), Some("no answer within 300ms")),
                (DRIPS_ON, own(30.0), Some("no answer within 3s")),
            ],
        ),
        (
            "3s",
            [
                (SILENT, None, None),
                (SILENT, own(30.0), None),
                (DRIPS, None, None),
                (SILENT, own(0.3), Some("no answer within 300ms")),
                (DRIPS, own(0.3), Some("no answer within 300ms")),
                (DRIPS_ON, None, Some("no answer within 3s")),
            ],
        ),
    ];
    for (read_timeout, cases) in table {
        let stub = StubOptions { limit: Some(20), ..StubOptions::default() };
        let site = Site::with(Db::sqlite().await.migrated().await, stub, "").await;
        let settings = [
            ("PERMITQ_DOWNSTREAM__DEFAULT__READ_TIMEOUT", read_timeout),
            ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "3s"),
            ("PERMITQ_CONSUMER__SLOTS", "20"),
            ("PERMITQ_RETRY__MAX_ATTEMPTS", "1"),
        ];
        let tasks: Vec<_> = cases
            .iter()
            .map(|(payload, timeout, _)| NewTask { timeout: *timeout, ..NewTask::new("call", *payload) })
            .collect();
        let tasks = crate::support::ids(&site.db.store().enqueue(&tasks).await.unwrap());
        let _member = site.start_with(&["run"], &settings);
        site.settled().await;
        for (id, case) in tasks.into_iter().zip(cases) {
            let task = site.db.task(id).await;
            let log = site.db.store().attempts(id).await.unwrap().remove(0);
            match case.2 {
                None => assert_eq!(task.state, State::Succeeded, "{read_timeout} {case:?}: {task:?}"),
                Some(why) => {
                    assert_eq!(task.state, State::Failed, "{read_timeout} {case:?}: {task:?}");
                    let error = log.error.unwrap();
                    assert!(
                        error.starts_with(why) || error.contains("the answer stopped"),
                        "{read_timeout} {case:?}: {error}"
                    );
                }
            }
        }
    }
}
