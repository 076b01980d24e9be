//! Answers that ask for another attempt.

use permitq::model::{NewTask, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::Db;
use crate::support::site::{Site, until};

contract! {
    a_retry_after_is_a_floor_with_jitter,
    any_answer_can_be_recorded,
}

/// Nobody comes back before it, and not all at once after it.
async fn a_retry_after_is_a_floor_with_jitter(db: Db) {
    let site = Site::new(db, 12).await;
    let payload = r#"{"ms": 20, "status": 429, "retry_after": 1, "fault_attempts": 1}"#;
    let tasks = vec![NewTask::new("call", payload); 12];
    let tasks = crate::support::ids(&site.db.store().enqueue(&tasks).await.unwrap());
    let settings = [("PERMITQ_RETRY__BACKOFF", "1s"), ("PERMITQ_CONSUMER__SLOTS", "12")];
    let _member = site.start_with(&["run"], &settings);
    site.settled().await;
    site.cap_held(12).await;
    let mut after = Vec::new();
    for task in tasks {
        assert_eq!(site.db.task(task).await.state, State::Succeeded);
        let [refused, done] = site.db.store().attempts(task).await.unwrap().try_into().unwrap();
        assert_eq!(refused.status, Some(429));
        after.push(done.claimed_at.duration_since(refused.ended_at).as_millis());
    }
    after.sort_unstable();
    // SQLite's stamps are of whole milliseconds.
    assert!(after[0] >= 999, "{after:?}");
    // Drawn evenly from one second: twelve of them within a quarter are one case in a million.
    assert!(after[11] - after[0] > 250, "{after:?}");
}

/// Bodies that no database or terminal likes.
fn strange() -> Vec<Vec<u8>> {
    vec![
        b"nul \0 and \x01\x1b[31m controls".to_vec(),
        b"invalid \xff\xfe\xc3 utf-8".to_vec(),
        b"lone surrogate \xed\xa0\x80 and \\ud800".to_vec(),
        "emoji 🦀👩‍👩‍👧 and 日本".into(),
        "right to left \u{202e}abc\u{202c} \u{200f}".into(),
        vec![b'x'; 2 << 20],
        "🦀".repeat(1 << 19).into(),
        b"' quote \" ; -- \\".to_vec(),
        Vec::new(),
    ]
}

/// Answers the first attempt of task `n` with 500 and the `n`-th strange body, the second with 200 and the same.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = String::new();
    while !request.ends_with('}') {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes).await? {
            0 => return Ok(()),
            n => request.push_str(&String::from_utf8_lossy(&bytes[..n])),
        }
    }
    let n: usize = request.rsplit_once("{\"n\":").unwrap().1.trim_end_matches('}').trim().parse().unwrap();
    let status = if request.contains("x-permitq-attempt: 1\r\n") { "500 No" } else { "200 OK" };
    let body = strange().swap_remove(n);
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}

/// The change of state never depends on what was said.
async fn any_answer_can_be_recorded(db: Db) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let site = Site::new(db, 4).await;
    let tasks: Vec<_> =
        (0..strange().len()).map(|n| NewTask::new("call", format!("{{\"n\": {n}}}"))).collect();
    let tasks = crate::support::ids(&site.db.store().enqueue(&tasks).await.unwrap());
    let _member = site.start_with(&["run"], &[("PERMITQ_DOWNSTREAM__DEFAULT__URL", &*url)]);
    until("all done", async || {
        let states = site.db.store().states(None).await.unwrap();
        states.iter().all(|(state, _)| state.is_final())
    })
    .await;
    server.abort();
    for (n, id) in tasks.into_iter().enumerate() {
        let task = site.db.task(id).await;
        let log = site.db.store().attempts(id).await.unwrap();
        let outcomes: Vec<_> = log.iter().map(|attempt| (&*attempt.outcome, attempt.status)).collect();
        assert_eq!(outcomes, [("failed", Some(500)), ("succeeded", Some(200))], "{n}: {task:?}");
        let error = log[0].error.as_ref().unwrap();
        assert!(error.starts_with("HTTP 500") && error.len() < 10_000, "{n}: {} bytes", error.len());
        assert!(!error.contains(['\0', '\u{1b}']), "{n}: {error:?}");
        assert_eq!(task.state, State::Succeeded, "{n}");
    }
    site.db.holds(0).await;
}
