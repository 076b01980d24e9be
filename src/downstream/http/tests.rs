//! Against downstreams of bare TCP on the loopback that misbehave on purpose.

use std::io;
use std::net::SocketAddr;
use tokio::time::timeout;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::*;
use crate::model::{Attempt, End, Verdict, Why};

/// A downstream that reads each request whole, notes it, and does as its script says.
struct Raw {
    addr: SocketAddr,
    requests: mpsc::UnboundedReceiver<String>,
}

impl Raw {
    async fn start<S, F>(script: S) -> Self
    where
        S: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = io::Result<()>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (noted, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await.unwrap_or_default();
                let last = request.is_empty();
                if noted.send(request).is_err() || last {
                    return;
                }
                script(stream).await.expect("the script plays to its end");
            }
        });
        Self { addr, requests }
    }

    /// A downstream that answers with these bytes and closes.
    async fn saying(answer: &'static str) -> Self {
        Self::start(move |mut stream| async move {
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await
        })
        .await
    }

    fn options(&self) -> HttpOptions {
        HttpOptions { url: format!("http://{}/call", self.addr), ..HttpOptions::default() }
    }

    /// Calls once, and sees that exactly one request came, whatever happened to it, and that its connection was not
    /// kept for the next call.
    async fn outcome(&mut self, options: HttpOptions) -> Outcome {
        let http = http(options);
        let outcome = within(http.call(&call())).await;
        // Connections are accepted in order: an empty one marks the end of all that the call can have made.
        TcpStream::connect(self.addr).await.unwrap().shutdown().await.unwrap();
        assert!(within(self.requests.recv()).await.unwrap().contains(" HTTP/1.1\r\n"));
        assert_eq!(within(self.requests.recv()).await.unwrap(), "", "one call, one request");
        drop(http);
        outcome
    }
}

/// What has not happened after so long never will.
async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}

/// Empty where the connection closes at once.
async fn read_request(stream: &mut TcpStream) -> io::Result<String> {
    let mut text = String::new();
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.is_none_or(|length| body.len() >= length.parse().unwrap()) {
                return Ok(text);
            }
        }
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes).await? {
            0 => return Ok(text),
            n => text.push_str(std::str::from_utf8(&bytes[..n]).unwrap()),
        }
    }
}

fn call() -> Call {
    Call {
        attempt: Attempt { task: 7, claim_no: 42 },
        attempt_no: 3,
        kind: "report".to_owned(),
        biz_key: Some("Öl: 1/2".to_owned()),
        payload: r#"{"month":"2026-11"}"#.to_owned(),
        idempotency_key: "fleet-7".to_owned(),
    }
}

fn http(options: HttpOptions) -> Http {
    Http::new(options).unwrap()
}

fn text(outcome: &Outcome) -> &str {
    match &outcome.verdict {
        Verdict::Succeeded { result } => result.as_deref().unwrap_or_default(),
        Verdict::Retry { error, .. } | Verdict::Down { error, .. } | Verdict::Failed { error } => error,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_down(outcome: &Outcome, words: &str) {
    assert!(matches!(outcome.verdict, Verdict::Down { after: None, .. }), "{outcome:?}");
    assert_eq!((outcome.end, outcome.status), (End::Clear, None));
    assert!(text(outcome).contains(words), "{outcome:?}");
}

#[track_caller]
fn assert_retried(outcome: &Outcome, end: End, words: &str) {
    assert!(matches!(outcome.verdict, Verdict::Retry { .. }), "{outcome:?}");
    assert_eq!(outcome.end, end, "{outcome:?}");
    assert!(text(outcome).contains(words), "{outcome:?}");
}

#[tokio::test]
async fn a_call_carries_payload_key_attempt_and_fencing_token() {
    let mut raw = Raw::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let headers = vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())];
    let http = http(HttpOptions { headers, ..raw.options() });
    assert_eq!(http.call(&call()).await, Outcome::succeeded("ok".to_owned()).with_status(200));
    let request = raw.requests.recv().await.unwrap();
    assert!(request.starts_with("POST /call HTTP/1.1\r\n"), "{request}");
    for line in [
        "idempotency-key: fleet-7\r\n",
        "x-permitq-key: %C3%96l%3A%201%2F2\r\n",
        "x-permitq-attempt: 3\r\n",
        "x-permitq-fencing-token: 42\r\n",
        "content-type: application/json\r\n",
        "authorization: Bearer s3cret\r\n",
    ] {
        assert_eq!(request.matches(line).count(), 1, "{line} in {request}");
    }
    assert!(request.ends_with("\r\n\r\n{\"month\":\"2026-11\"}"), "{request}");

    // The next call takes a connection of its own, and a GET has no body; one's own content type replaces ours.
    let again = Http { method: Method::GET, ..http };
    assert_eq!(text(&again.call(&call()).await), "ok");
    let request = raw.requests.recv().await.unwrap();
    assert!(request.starts_with("GET /call HTTP/1.1\r\n") && request.ends_with("\r\n\r\n"), "{request}");
    assert!(!request.contains("content-"), "{request}");
    let headers = vec![("content-type".to_owned(), "text/json".to_owned())];
    assert_eq!(text(&self::http(HttpOptions { headers, ..raw.options() }).call(&call()).await), "ok");
    let request = raw.requests.recv().await.unwrap();
    assert!(request.contains("content-type: text/json\r\n") && !request.contains("application"), "{request}");
}

#[tokio::test]
async fn refused_is_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret?token=s3cret", listener.local_addr().unwrap());
    drop(listener);
    let outcome = http(HttpOptions { url, ..HttpOptions::default() }).call(&call()).await;
    assert_down(&outcome, "Connection refused");
    assert!(!text(&outcome).contains("secret"), "{outcome:?}");
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_in_time_is_clear() {
    // A listener that accepts nothing: once its queue is full, the kernel ignores further connections.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(addr)).await {
        queued.push(stream.unwrap());
    }
    let options = HttpOptions {
        url: format!("http://{addr}/"),
        connect_timeout: Duration::from_millis(100),
        ..HttpOptions::default()
    };
    assert_down(&within(http(options).call(&call())).await, "");
}

#[tokio::test]
async fn tls_that_fails_is_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut hello = Vec::new();
        let _ = stream.read_to_end(&mut hello).await;
        hello
    });
    let outcome = http(HttpOptions { url, ..HttpOptions::default() }).call(&call()).await;
    assert_retried(&outcome, End::Clear, "");
    assert!(!String::from_utf8_lossy(&plain.await.unwrap()).contains("POST"), "no request was sent");
}

#[tokio::test]
async fn a_connection_lost_before_the_answers_end_is_unclear() {
    let lost = End::Unclear(Why::Connection);
    // Reset, and closed, after the request came.
    let mut raw = Raw::start(async |stream| stream.set_zero_linger()).await;
    assert_retried(&raw.outcome(raw.options()).await, lost, "");
    let mut raw = Raw::saying("").await;
    let mut options = raw.options();
    // Not we hung up: that the downstream stops on disconnect proves nothing.
    options.stops_on_disconnect = true;
    assert_retried(&raw.outcome(options).await, lost, "");
    // Half a head; half a body with a length; half a chunked body; no HTTP at all.
    for (answer, status) in [
        ("HTTP/1.1 200 OK\r\nContent-Le", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Some(200)),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nhalf", Some(404)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", Some(200)),
        ("nonsense\r\n\r\n", None),
    ] {
        let mut raw = Raw::saying(answer).await;
        let outcome = raw.outcome(raw.options()).await;
        assert_retried(&outcome, lost, "");
        assert_eq!(outcome.status, status, "{answer}");
    }
}

#[tokio::test]
async fn silence_ends_at_the_read_timeout_and_hangs_up() {
    for (begun, status) in [("", None), ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Some(200))] {
        for (stops_on_disconnect, end) in [(false, End::Unclear(Why::Timeout)), (true, End::Stopped)] {
            // Its script plays to its end only when the caller has hung up.
            let mut raw = Raw::start(move |mut stream| async move {
                stream.write_all(begun.as_bytes()).await?;
                stream.read_to_end(&mut Vec::new()).await.map(|_| ())
            })
            .await;
            let read_timeout = Duration::from_millis(150);
            let options = HttpOptions { read_timeout, stops_on_disconnect, ..raw.options() };
            let outcome = raw.outcome(options).await;
            assert_retried(&outcome, end, "for 150ms (read_timeout)");
            assert_eq!(outcome.status, status);
        }
    }
}

/// In the middle of a call, with everything acknowledged: the kernel's keep-alive timer runs (`tr` is 2 in `proc_pid_net(5)`),
/// and is over within its pause (`tm->when`, in hundredths of a second).
#[tokio::test]
async fn a_silent_connection_is_probed() {
    let mut raw = Raw::start(|mut stream: TcpStream| async move {
        let caller = format!(":{:04X}", stream.peer_addr()?.port());
        let timer = || {
            let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
            let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
            let ours = rows.find(|row| row[1].ends_with(&caller));
            ours.and_then(|row| {
                row[5].split_once(':').map(|(timer, when)| (timer.to_owned(), when.to_owned()))
            })
        };
        let when = loop {
            match timer() {
                Some((timer, when)) if timer == "02" => break u64::from_str_radix(&when, 16).unwrap(),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let body = format!("{when}");
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await
    })
    .await;
    let outcome = raw.outcome(raw.options()).await;
    let when: u128 = text(&outcome).parse().unwrap();
    assert!(when * 10 <= KEEP_ALIVE.as_millis(), "the first probe after {when}0 ms");
}

#[tokio::test]
async fn answers_read_to_their_end_are_what_their_status_says() {
    let after = |seconds| Some(Duration::from_secs(seconds));
    let retry = |after: Option<Duration>, error: &str| Verdict::Retry { error: error.to_owned(), after };
    let failed = |error: &str| Verdict::Failed { error: error.to_owned() };
    let succeeded = |result: &str| Verdict::Succeeded { result: Some(result.to_owned()) };
    let (clear, cools) = (End::Clear, End::Unclear(Why::Status));
    let table = [
        ("201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n", succeeded("one"), clear),
        ("204 No Content\r\n\r\n", Verdict::Succeeded { result: None }, clear),
        ("200 OK\r\n\r\nuntil the close", succeeded("until the close"), clear),
        ("202 Accepted\r\nContent-Length: 5\r\n\r\nlater", succeeded("later"), cools),
        (
            "429 Too Many Requests\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n",
            retry(after(17), "HTTP 429 Too Many Requests"),
            clear,
        ),
        (
            "503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\nContent-Length: 4\r\n\r\nbusy",
            Verdict::Down { error: "HTTP 503 Service Unavailable: busy".to_owned(), after: after(10) },
            clear,
        ),
        (
            "500 Oops\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n",
            retry(None, "HTTP 500 Internal Server Error"),
            clear,
        ),
        ("504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n", retry(None, "HTTP 504 Gateway Timeout"), cools),
        ("404 Not Found\r\nContent-Length: 0\r\n\r\n", failed("HTTP 404 Not Found"), clear),
        // A redirect to itself would be followed for ever, and each time do the work again.
        (
            "307 Temporary Redirect\r\nLocation: /call\r\nContent-Length: 0\r\n\r\n",
            failed("HTTP 307 Temporary Redirect (redirects are not followed)"),
            clear,
        ),
    ];
    for (answer, verdict, end) in table {
        let mut raw = Raw::saying(Box::leak(format!("HTTP/1.1 {answer}").into_boxed_str())).await;
        let outcome = raw.outcome(raw.options()).await;
        let status = answer[..3].parse().ok();
        assert_eq!(outcome, Outcome { verdict, end, status });
    }
}

#[tokio::test]
async fn a_huge_answer_is_read_to_its_end_and_its_beginning_kept() {
    const HUGE: usize = 8 << 20;
    let mut raw = Raw::start(async |mut stream: TcpStream| {
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n").as_bytes()).await?;
        for _ in 0..HUGE / 4096 {
            stream.write_all(&[b'x'; 4096]).await?;
        }
        // The answer may keep the connection; the caller closes it all the same, once it has read everything.
        stream.read_to_end(&mut Vec::new()).await.map(|_| ())
    })
    .await;
    let options = HttpOptions { max_result_bytes: 5000, ..raw.options() };
    let outcome = raw.outcome(options).await;
    assert_eq!((outcome.end, outcome.status), (End::Clear, Some(200)));
    assert_eq!(text(&outcome), format!("{}…", "x".repeat(4997)));
}

#[tokio::test]
async fn a_redirect_takes_nothing_to_another_host() {
    let mut elsewhere = Raw::saying("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        for to in [format!("http://{}/", elsewhere.addr), format!("//{}/", elsewhere.addr)] {
            let answer = format!("HTTP/1.1 {status}\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
            let mut raw = Raw::saying(Box::leak(answer.into_boxed_str())).await;
            let headers = vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())];
            let outcome = raw.outcome(HttpOptions { headers, ..raw.options() }).await;
            assert!(text(&outcome).ends_with("(redirects are not followed)"), "{outcome:?}");
        }
    }
    TcpStream::connect(elsewhere.addr).await.unwrap().shutdown().await.unwrap();
    assert_eq!(within(elsewhere.requests.recv()).await.unwrap(), "", "nobody came but this test");
}

#[tokio::test]
async fn a_task_says_what_is_sent_and_never_where_or_how() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let evil =
        "http://evil/ //evil/../..%2f?a=b#c @evil:1 \r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1\r\n \0\u{1b}[2J";
    let mut raw = Raw::saying(OK).await;
    let http = http(raw.options());
    let call =
        Call { kind: evil.to_owned(), biz_key: Some(evil.to_owned()), payload: evil.to_owned(), ..call() };
    assert_eq!(http.call(&call).await.status, Some(200));
    let request = raw.requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /call HTTP/1.1\r\n"), "{head}");
    assert_eq!(
        head.matches("evil").count(),
        head.matches("%2Fevil").count() + head.matches("%40evil").count()
    );
    let lines: Vec<_> = head.lines().skip(1).map(|line| line.split_once(": ").unwrap()).collect();
    let host: Vec<_> = lines.iter().filter(|(name, _)| *name == "host").map(|(_, value)| *value).collect();
    assert_eq!((host, body), (vec![raw.addr.to_string().as_str()], evil));
    let mut names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let expected = ["accept", "content-length", "content-type", "host", "idempotency-key", "user-agent"];
    let ours = ["x-permitq-attempt", "x-permitq-fencing-token", "x-permitq-key"];
    assert_eq!(names, [&expected[..], &ours].concat());
    assert!(!head.contains("accept-encoding"), "answers are not asked for compressed");

    // The one header that comes from the database as it stands: a hand at the table may have put anything there.
    let outcome = http.call(&Call { idempotency_key: "a\r\nX-Evil: 1".to_owned(), ..call }).await;
    assert!(matches!(outcome.verdict, Verdict::Failed { .. }) && outcome.end == End::Clear, "{outcome:?}");
    assert!(text(&outcome).contains("the request cannot be built"), "{outcome:?}");
}

#[tokio::test]
async fn heads_that_never_end_are_given_up() {
    let lost = End::Unclear(Why::Connection);
    for line in ["X-More: and more\r\n", "X-Long: ", "no end of a line "] {
        let mut raw = Raw::start(move |mut stream| async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            // Until the caller has enough.
            while stream.write_all(line.as_bytes()).await.is_ok() {}
            Ok(())
        })
        .await;
        assert_retried(&raw.outcome(raw.options()).await, lost, "");
    }
    // Answers before the answer, without end: they are no sign of life.
    let mut raw = Raw::start(async |mut stream: TcpStream| {
        while stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    })
    .await;
    let options = HttpOptions { read_timeout: Duration::from_millis(300), ..raw.options() };
    assert_retried(&raw.outcome(options).await, End::Unclear(Why::Timeout), "no answer for 300ms");
}

#[tokio::test]
async fn what_was_told_in_confidence_does_not_come_back() {
    let mut raw = Raw::start(async |mut stream: TcpStream| {
        let body = "who is Bearer s3cret-token? no s3cret-token is known here, s3cret-tok";
        let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
    let secrets = vec!["Bearer s3cret-token".to_owned(), "s3cret-token".to_owned(), "no".to_owned()];
    let outcome = raw.outcome(HttpOptions { secrets, ..raw.options() }).await;
    let said = "HTTP 403 Forbidden: who is ***? no *** is known here, s3cret-tok";
    assert_eq!(text(&outcome), said);
}

#[tokio::test]
async fn dropping_the_call_hangs_up() {
    let (hung_up, mut seen) = mpsc::unbounded_channel();
    let mut raw = Raw::start(move |mut stream| {
        let hung_up = hung_up.clone();
        async move {
            stream.read_to_end(&mut Vec::new()).await?;
            let _ = hung_up.send(());
            Ok(())
        }
    })
    .await;
    let http = http(raw.options());
    let call = tokio::spawn(async move { http.call(&call()).await });
    assert!(raw.requests.recv().await.is_some());
    call.abort();
    assert_eq!(within(seen.recv()).await, Some(()));
}

#[test]
fn wrong_options_are_refused_with_a_reason() {
    let with = |change: fn(&mut HttpOptions)| {
        let mut options = HttpOptions::default();
        change(&mut options);
        Http::new(options).map(|_| ()).unwrap_err().to_string()
    };
    let header = |name: &str, value: &str| {
        let headers = vec![(name.to_owned(), value.to_owned())];
        Http::new(HttpOptions { headers, ..HttpOptions::default() }).map(|_| ()).unwrap_err().to_string()
    };
    assert!(with(|o| o.url = "reports/call".into()).starts_with("url: relative URL"));
    assert!(with(|o| o.url = "http://".into()).starts_with("url: empty host"));
    assert!(with(|o| o.url = "file:///etc/passwd".into()).starts_with("url: scheme \"file\""));
    assert!(with(|o| o.method = "post".into()).starts_with("method: \"post\""));
    assert!(with(|o| o.method = "CONNECT".into()).starts_with("method: "));
    assert!(with(|o| o.method = "PO ST".into()).starts_with("method: "));
    assert!(with(|o| o.method = String::new()).starts_with("method: "));
    assert!(with(|o| o.connect_timeout = Duration::ZERO).starts_with("connect_timeout: "));
    assert!(with(|o| o.read_timeout = Duration::MAX).starts_with("read_timeout: "));
    assert!(with(|o| o.tcp_user_timeout = Duration::ZERO).starts_with("tcp_user_timeout: "));
    assert!(header("no name", "x").starts_with("headers: \"no name\""));
    assert!(header("Idempotency-Key", "x").contains("set by permitq"));
    assert!(header("Content-Length", "1").contains("set by permitq"));
    let split = header("X-Token", "s3cret\r\nX-Evil: 1");
    assert!(split.contains("X-Token") && !split.contains("s3cret"), "{split}");
}

#[test]
fn secrets_are_not_shown() {
    let options = HttpOptions {
        url: "https://user:s3cret@host/path?key=s3cret#s3cret".to_owned(),
        headers: vec![("Authorization".to_owned(), "Bearer s3cret".to_owned())],
        ..HttpOptions::default()
    };
    let shown = format!("{options:?} {:?}", http(options.clone()));
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("https://host/path") && shown.contains("Authorization"), "{shown}");
}
