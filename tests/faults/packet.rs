//! A MariaDB that takes small packets only, and cuts what does not fit where it is allowed to.

use loadtest::servers::Server;
use permitq::model::NewTask;
use tokio::task::spawn_blocking;

use crate::support::Db;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_beyond_the_packet_is_refused() {
    let options = ["--max-allowed-packet=1M", "--sql-mode="];
    let server = spawn_blocking(move || Server::mariadb_with(false, &options)).await.unwrap();
    let db = Db::alone_on(&server).await;
    assert_eq!(db.text("SELECT @@global.sql_mode").await, "", "the server is lax");
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let mut a = db.consumer("a").await;
    for (bytes, fits) in [(64 << 10, true), (900_000, true), (1 << 20, false), (3 << 20, false)] {
        let enqueued = a.store.enqueue(&[NewTask::new("call", text(bytes))]).await;
        assert_eq!(enqueued.is_ok(), fits, "{bytes} bytes: {enqueued:?}");
        if enqueued.is_err() {
            continue;
        }
        let claim = a.claim_one().await;
        assert!(claim.payload == text(bytes), "{bytes} bytes were cut");
        assert!(db.task(claim.attempt.task).await.payload == Some(text(bytes)));
    }
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 2);
    // Texts that do not fit their column are refused by us, and never cut.
    for bad in [NewTask::new("k".repeat(101), "{}"), NewTask::new("call", "{}").key("k".repeat(256))] {
        assert!(a.store.enqueue(&[bad]).await.is_err());
    }
    assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 2);
}
