//! The stub is called through the product's own client, so that both are seen to agree on every fault.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::downstream::{Handler, Http, HttpOptions};
use crate::model::{Attempt, End, Outcome, Verdict, Why};

/// Longer than any test takes: only what ends such a call early lets a test pass.
const LONG: u64 = 600_000;

async fn stub(limit: u32) -> Stub {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    start(StubOptions { listen, limit: Some(limit), default_ms: 0, ..StubOptions::default() }).await.unwrap()
}

/// A task that calls with this query.
fn task(stub: &Stub, id: i64, query: &str) -> impl Future<Output = Outcome> + Send + 'static {
    let url = format!("{}?{query}", stub.url());
    let http = Http::new(HttpOptions { url, ..HttpOptions::default() }).unwrap();
    let call = crate::downstream::Call {
        attempt: Attempt { task: id, claim_no: 10 + id },
        attempt_no: 2,
        kind: "report".to_owned(),
        biz_key: None,
        payload: "{}".to_owned(),
        idempotency_key: format!("key-{id}"),
    };
    async move { within(http.call(&call)).await }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}

/// Waits until the stub has counted so.
async fn until(stub: &Stub, counted: impl Fn(&Summary) -> bool) -> Summary {
    within(async {
        loop {
            let seen = stub.summary();
            if counted(&seen) {
                return seen;
            }
            sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

#[tokio::test]
async fn calls_in_flight_are_counted_truly() {
    let stub = stub(4).await;
    let calls: Vec<_> = (0..3).map(|id| tokio::spawn(task(&stub, id, &format!("ms={LONG}")))).collect();
    until(&stub, |seen| seen.in_flight == 3).await;
    assert_eq!(task(&stub, 3, "ms=1").await.status, Some(200));
    // Whoever has its answer is no longer counted.
    let seen = stub.summary();
    assert_eq!((seen.calls, seen.in_flight, seen.max_in_flight, seen.overruns), (4, 3, 4, 0));
    let entry = seen.log.last().unwrap();
    assert_eq!(
        (entry.key.as_deref(), entry.attempt, entry.token, entry.status),
        (Some("key-3"), Some(2), Some(13), Some(200))
    );
    assert!(entry.end_us.unwrap() > entry.start_us && !entry.caller_gone && !entry.overrun);
    let seen = within(stub.shutdown()).await;
    assert_eq!((seen.in_flight, seen.succeeded), (0, 1));
    for call in calls {
        assert_eq!(call.await.unwrap().end, End::Unclear(Why::Connection), "cut off, not answered");
    }
}

#[tokio::test]
async fn one_call_too_many_is_an_overrun() {
    let stub = stub(1).await;
    let call = tokio::spawn(task(&stub, 1, &format!("ms={LONG}")));
    until(&stub, |seen| seen.in_flight == 1).await;
    let refused = task(&stub, 2, "ms=0").await;
    assert_eq!((refused.status, refused.end), (Some(503), End::Clear));
    let seen = stub.summary();
    assert_eq!((seen.calls, seen.in_flight, seen.max_in_flight, seen.overruns), (2, 1, 2, 1));
    assert!(seen.log[1].overrun);
    stub.set_limit(Some(2));
    assert_eq!(task(&stub, 2, "ms=0").await.status, Some(200));
    assert_eq!(stub.summary().overruns, 1);
    call.abort();
}

#[tokio::test]
async fn a_call_whose_caller_has_gone_stays_in_flight() {
    let stub = stub(1).await;
    let call = tokio::spawn(task(&stub, 1, &format!("ms={LONG}")));
    until(&stub, |seen| seen.in_flight == 1).await;
    call.abort();
    let seen = until(&stub, |seen| seen.callers_gone == 1).await;
    assert_eq!(seen.in_flight, 1, "its caller has gone, the call has not");
    assert!(seen.log[0].caller_gone && seen.log[0].end_us.is_none());
    assert_eq!(task(&stub, 2, "ms=0").await.status, Some(503));
    assert_eq!(stub.summary().overruns, 1);
}

#[tokio::test]
async fn a_call_ends_when_its_time_is_over_although_its_caller_has_gone() {
    let stub = stub(1).await;
    let call = tokio::spawn(task(&stub, 1, "ms=200"));
    until(&stub, |seen| seen.calls == 1).await;
    call.abort();
    let seen = until(&stub, |seen| seen.in_flight == 0).await;
    assert!(seen.log[0].end_us.unwrap() - seen.log[0].start_us >= 200_000);
    // The downstream has done the work, although nobody heard of it: a repeat is a duplicate.
    assert_eq!(task(&stub, 1, "ms=0").await.status, Some(200));
    assert_eq!(stub.summary().duplicates, 1);
}

#[tokio::test]
async fn a_stub_that_stops_on_disconnect_ends_the_call_with_its_caller() {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        StubOptions { listen, stop_on_disconnect: true, default_ms: LONG, ..StubOptions::default() };
    let stub = start(options).await.unwrap();
    for query in ["", "fault=drip"] {
        let call = tokio::spawn(task(&stub, 1, query));
        until(&stub, |seen| seen.in_flight == 1).await;
        call.abort();
        until(&stub, |seen| seen.in_flight == 0).await;
    }
    let seen = stub.summary();
    assert_eq!((seen.callers_gone, seen.succeeded, seen.duplicates), (2, 0, 0));
    assert!(seen.log.iter().all(|entry| entry.end_us.is_some()));
}

#[tokio::test]
async fn every_fault_is_what_it_says() {
    let stub = stub(1).await;
    let (clear, lost, cools) = (End::Clear, End::Unclear(Why::Connection), End::Unclear(Why::Status));
    let table = [
        ("ms=1", Some(200), clear, 1),
        ("ms=1&fault=fail", Some(500), clear, 0),
        ("ms=1&status=418", Some(418), clear, 0),
        ("ms=1&status=202", Some(202), cools, 1),
        ("ms=1&fault=504", Some(504), cools, 0),
        ("ms=20&fault=hang", None, lost, 0),
        ("ms=20&fault=reset", None, lost, 0),
        ("ms=20&fault=cut", Some(200), lost, 0),
        ("ms=60&fault=drip", Some(200), clear, 1),
        ("ms=1&fault=fail&fault_attempts=1", Some(200), clear, 1),
    ];
    for (id, (query, status, end, succeeded)) in (1..).zip(table) {
        assert_eq!(post(&stub, "/reset").await, 200);
        let outcome = task(&stub, id, query).await;
        assert_eq!((outcome.status, outcome.end), (status, end), "{query}: {outcome:?}");
        let seen = until(&stub, |seen| seen.in_flight == 0).await;
        assert_eq!((seen.calls, seen.overruns, seen.callers_gone), (1, 0, 0), "{query}");
        assert_eq!(seen.succeeded, succeeded, "{query}");
        // What was not answered in full has no status in the log either.
        assert_eq!(seen.log[0].status, status.filter(|_| end != lost), "{query}");
    }
    let busy = task(&stub, 99, "status=429&retry_after=17").await;
    assert!(
        matches!(busy.verdict, Verdict::Retry { after: Some(after), .. } if after.as_secs() == 17),
        "{busy:?}"
    );
    let busy = task(&stub, 99, "status=429").await;
    assert!(
        matches!(busy.verdict, Verdict::Retry { after: Some(after), .. } if after.as_secs() == 1),
        "{busy:?}"
    );
}

#[tokio::test]
async fn a_call_goes_on_after_an_answer_that_says_so_and_after_a_broken_connection() {
    for query in ["status=202", "status=504", "fault=cut", "fault=reset", "status=200"] {
        let stub = stub(1).await;
        let outcome = task(&stub, 1, &format!("ms={LONG}&answer_ms=1&{query}")).await;
        assert_eq!(stub.summary().in_flight, 1, "{query}: {outcome:?}");
        assert_eq!(task(&stub, 2, "ms=0").await.status, Some(503), "{query}");
        let seen = within(stub.shutdown()).await;
        assert_eq!((seen.in_flight, seen.succeeded, seen.callers_gone), (0, 0, 0), "{query}");
    }
}

#[tokio::test]
async fn reset_is_a_reset_and_hang_a_close() {
    let stub = stub(9).await;
    let talk = async |query: &str| {
        let mut stream = TcpStream::connect(stub.addr).await?;
        let request = format!("POST /call?{query} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        within(stream.read_to_string(&mut answer)).await?;
        io::Result::Ok(answer)
    };
    assert_eq!(talk("fault=hang").await.unwrap(), "");
    assert_eq!(talk("fault=reset").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let half = talk("fault=cut").await.unwrap();
    assert!(half.contains("content-length: 11\r\n") && half.ends_with("\r\n\r\n{\"ok\":"), "{half}");
}

#[tokio::test]
async fn drip_sends_pieces_until_the_call_is_over() {
    let stub = stub(1).await;
    let url = format!("{}?ms=100&fault=drip", stub.url());
    let mut response = within(client().post(url).send()).await.unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = within(response.chunk()).await.unwrap() {
        pieces.push(String::from_utf8(piece.to_vec()).unwrap());
    }
    assert!(pieces.len() > 2, "{pieces:?}");
    assert_eq!(pieces.concat().trim_start(), "{\"ok\":true}");
    assert_eq!(stub.summary().in_flight, 0, "it leaves the count before its end can be seen");
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn post(stub: &Stub, path: &str) -> u16 {
    let url = format!("http://{}{path}", stub.addr);
    within(client().post(url).send()).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_routes_are_what_the_design_says() {
    let stub = stub(3).await;
    for id in 0..3 {
        task(&stub, id, "").await;
    }
    let get = async |path: &str| {
        let response = client().get(format!("http://{}{path}", stub.addr)).send().await.unwrap();
        response.json::<serde_json::Value>().await.unwrap()
    };
    let seen = get("/summary").await;
    for (field, value) in [("limit", 3), ("calls", 3), ("in_flight", 0), ("max_in_flight", 1)] {
        assert_eq!(seen[field], value, "{field} in {seen}");
    }
    for (field, value) in [("overruns", 0), ("duplicates", 0), ("overlaps", 0)] {
        assert_eq!(seen[field], value, "{field} in {seen}");
    }
    assert_eq!(seen["log"].as_array().unwrap().len(), 3);
    assert_eq!(get("/summary?log=1").await["log"][0]["key"], "key-2");
    assert_eq!(serde_json::from_value::<Summary>(seen).unwrap(), stub.summary());
    assert_eq!(post(&stub, "/limit?n=5").await, 200);
    assert_eq!(stub.summary().limit, Some(5));
    assert_eq!(post(&stub, "/limit").await, 200);
    assert_eq!(stub.summary().limit, None);
    assert_eq!(post(&stub, "/call?fault=explode").await, 400);
    assert_eq!(post(&stub, "/call?ms=soon").await, 400);
    assert_eq!(post(&stub, "/reset").await, 200);
    assert_eq!(stub.summary(), Summary::default());
}

#[tokio::test]
async fn faults_by_chance_strike_whoever_asks_for_none() {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let faults = vec![Fault::Status(503)];
    let options = StubOptions { listen, faults, fault_rate: 1.0, default_ms: 0, ..StubOptions::default() };
    let stub = start(options).await.unwrap();
    assert_eq!(task(&stub, 1, "").await.status, Some(503));
    assert_eq!(task(&stub, 1, "status=418").await.status, Some(418));
}
