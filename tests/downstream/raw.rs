//! Answers of bare TCP: without end, too large for any memory, or asked for by a detour.

use std::fs;
use std::io;
use std::time::Duration;

use permitq::model::State;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::support::Db;
use crate::support::site::{BRIEF, Site, until};

const URL: &str = "PERMITQ_DOWNSTREAM__DEFAULT__URL";

/// A downstream that reads a request and answers it so.
async fn downstream<F>(answer: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // As small as these requests are, they come at once.
            if stream.read(&mut [0; 4096]).await.is_ok() {
                tokio::spawn(answer(stream));
            }
        }
    });
    url
}

/// What a process has had in memory at most, in KiB.
fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_of_answer_is_read_and_not_kept() {
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 1 << 10;
    let url = downstream(async |mut stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PIECE * PIECES);
        stream.write_all(head.as_bytes()).await?;
        let piece = vec![b'x'; PIECE];
        for _ in 0..PIECES {
            stream.write_all(&piece).await?;
        }
        stream.read(&mut [0]).await.map(|_| ())
    })
    .await;
    let site = Site::new(Db::sqlite().await.migrated().await, 1).await;
    let member =
        site.start_with(&["run"], &[(URL, &*url), ("PERMITQ_DOWNSTREAM__DEFAULT__CALL_TIMEOUT", "1m")]);
    site.alive(1).await;
    let before = peak_memory(member.pid());
    let task = site.enqueue(1, Duration::ZERO).await[0];
    site.state(task, State::Succeeded).await;
    let more = peak_memory(member.pid()) - before;
    assert!(more < 32 << 10, "{more} KiB more than before");
    assert!(site.db.task(task).await.result.unwrap().ends_with("x…"));
    site.settled().await;
}

/// Never silent for long, and never done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_trickles_ends_by_the_call_timeout_and_cools() {
    let url = downstream(async |mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await?;
        loop {
            stream.write_all(b"x").await?;
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let site = Site::new(Db::sqlite().await.migrated().await, 1).await;
    let settings = [
        &BRIEF[..],
        &[
            (URL, &*url),
            ("PERMITQ_DOWNSTREAM__DEFAULT__READ_TIMEOUT", "1s"),
            ("PERMITQ_RETRY__MAX_ATTEMPTS", "1"),
        ],
    ]
    .concat();
    let task = site.enqueue(1, Duration::ZERO).await[0];
    let _member = site.start_with(&["run"], &settings);
    site.settled().await;
    let ended = site.db.store().attempts(task).await.unwrap().remove(0);
    assert!(ended.error.as_ref().unwrap().starts_with("no answer within 1s"), "{ended:?}");
    let took = ended.ended_at.duration_since(ended.claimed_at);
    let held = ended.permit_released_at.unwrap().duration_since(ended.claimed_at);
    // SQLite's stamps are of whole milliseconds.
    assert!(took.as_millis() >= 999 && held.as_millis() >= 1999, "ended after {took}, free after {held}");
}

/// A proxy repeats calls, answers for others and ends silent connections; and it would learn our secrets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_in_the_environment_is_not_asked() {
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let settings = names.map(|name| (name, &*url));
    let site = Site::new(Db::sqlite().await.migrated().await, 1).await;
    let probe = ("PERMITQ_DOWNSTREAM__DEFAULT__PROBE", format!("{}?{{key}}", site.stub.url()));
    let settings = [&settings[..], &[(probe.0, &*probe.1)]].concat();
    let tasks = site.enqueue(1, Duration::from_millis(10)).await;
    let _member = site.start_with(&["run"], &settings);
    until("it is called", async || site.stub.summary().calls > 0 || proxy.accept().is_ok()).await;
    site.nothing_lost_or_doubled(&tasks, 1).await;
    assert!(proxy.accept().is_err(), "somebody came to the proxy");
}
