//! Calls that were given up, and a downstream that can be asked about them.

use std::time::Duration;

use permitq::downstream::{HttpOptions, Probe};
use permitq::model::State;
use permitq::upkeep::Prober;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::Db;
use crate::support::site::Site;

contract! {
    a_definite_done_ends_a_cooling_long_before_its_bound,
    whatever_is_not_definite_ends_no_cooling,
}

const CALL: Duration = Duration::from_millis(700);

/// Long enough that only a probe ends a cooling while the test waits.
const PATIENT: (&str, &str) = ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "5m");

async fn a_definite_done_ends_a_cooling_long_before_its_bound(db: Db) {
    let site = Site::new(db, 1).await;
    let tasks = site.enqueue(2, CALL).await;
    let killed = site.start_with(&["run", "--name", "killed"], &[PATIENT]);
    site.in_flight(1).await;
    killed.kill();
    let probe = format!("http://{}/calls/{{key}}", site.stub.addr);
    let settings = [PATIENT, ("PERMITQ_DOWNSTREAM__DEFAULT__PROBE", &probe)];
    let _other = site.start_with(&["run", "--name", "other"], &settings);
    for task in &tasks {
        site.state(*task, State::Succeeded).await;
    }
    site.settled().await;
    site.cap_held(1).await;
    let lost = "SELECT count(*) FROM permitq_attempt WHERE outcome = 'abandoned'";
    assert_eq!(site.db.int(lost).await, 1);
}

async fn whatever_is_not_definite_ends_no_cooling(db: Db) {
    let site = Site::new(db, 2).await;
    let id = site.enqueue(1, CALL).await[0];
    // Given up twice, and neither call has ever come to the downstream; then it works on the second.
    for name in ["a", "b"] {
        let claim = site.db.consumer(name).await.claim_one().await;
        assert_eq!(claim.attempt.task, id);
        site.db.vanish(name).await;
        site.db.reclaim().await;
    }
    site.db.sql("UPDATE permitq_task SET state = 'cancelled', finished_at = created_at").await;
    let installation = site.db.text("SELECT installation FROM permitq_schema").await;
    let probe = |path: &str| {
        let url = format!("http://{}{path}", site.stub.addr);
        vec![("default".to_owned(), Some(Probe::new(&url, &HttpOptions::default()).unwrap()))]
    };
    let pass = async |path: &str| {
        let mut prober = Prober::new(&site.db.database, Duration::from_secs(1), probe(path));
        prober.pass().await.unwrap();
        site.db.holds(2).await;
    };
    pass("/calls/{key}").await; // unknown
    pass("/no/such/place").await;
    let mut call = TcpStream::connect(site.stub.addr).await.unwrap();
    let head = format!(
        "POST /call?ms=60000 HTTP/1.1\r\nHost: stub\r\nContent-Length: 0\r\n\
         Idempotency-Key: {installation}-{id}\r\nX-Permitq-Fencing-Token: 2\r\n\r\n"
    );
    call.write_all(head.as_bytes()).await.unwrap();
    site.in_flight(1).await;
    pass("/calls/{key}").await; // running
    // A kind that is named has no probe, so nobody is asked, whatever the default would say.
    let mut named = probe("/calls/{key}");
    named.push(("call".to_owned(), None));
    Prober::new(&site.db.database, Duration::from_secs(1), named).pass().await.unwrap();
    site.db.holds(2).await;
}
