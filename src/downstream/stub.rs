//! A downstream for trying things: it counts truly, and misbehaves on request.
//!
//! What a client believes to be in flight proves nothing; this counts what the *downstream* has in flight, from the
//! moment a request has arrived whole. A call whose caller has gone stays in flight until its time is over, as with
//! most real ones (unless [`StubOptions::stop_on_disconnect`]). So a queue that frees a permit too early shows up here
//! as an overrun: a call that arrives while as many as the limit are in flight. It is refused with 503 and takes no
//! time, but shows in the peak.
//!
//! | route | does |
//! |---|---|
//! | `POST /call?ms=` | one call, as the query and the JSON body ask, the query first |
//! | `GET /calls/KEY` | how the newest call with this `Idempotency-Key` (and `X-Permitq-Fencing-Token`, if sent) stands |
//! | `GET /summary?log=N` | a [`Summary`] as JSON; `log` bounds its entries to the newest `N` |
//! | `POST /reset` | forgets everything but the calls in flight |
//! | `POST /limit?n=` | a new limit; none without `n` |
//!
//! | a call asks | for |
//! |---|---|
//! | `ms` | its time, in milliseconds |
//! | `fault` | one of [`Fault`], for example `fault=cut` |
//! | `status` | short for the fault that answers so |
//! | `retry_after` | that header, in seconds; a 429 has it anyway |
//! | `answer_ms` | its answer after so long, while the call goes on to its end; half of its time for 202, 504, `cut` and `reset` |
//! | `fault_attempts` | the fault in the first so many attempts of a task only, by `X-Permitq-Attempt` |

mod ask;
mod book;
#[cfg(test)]
mod tests;
mod wire;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use ask::{Ask, Plan};
use book::{Book, Call};
use wire::{Listener, Tap};

pub use ask::Fault;
pub use book::{Entry, Summary};

/// What a stub downstream is like.
#[derive(Clone, Debug, PartialEq)]
pub struct StubOptions {
    /// Where it listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// More calls at once than this are overruns; `None` bears any number.
    pub limit: Option<u32>,
    /// How long a call takes that does not say, in milliseconds.
    pub default_ms: u64,
    /// A call whose caller has gone ends at once.
    pub stop_on_disconnect: bool,
    /// Faults that calls meet by chance, each as likely as the others.
    pub faults: Vec<Fault>,
    /// How likely a call meets one of them, from 0 to 1.
    pub fault_rate: f64,
    /// The same seed and the same order of calls meet the same faults.
    pub seed: u64,
    /// Entries kept in the log; the oldest go first.
    pub log_max: usize,
}

impl Default for StubOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            limit: None,
            default_ms: 1000,
            stop_on_disconnect: false,
            faults: Vec::new(),
            fault_rate: 0.0,
            seed: 0,
            log_max: 100_000,
        }
    }
}

/// A running stub downstream; dropping it ends it.
#[derive(Debug)]
pub struct Stub {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
    _stop: DropGuard,
}

/// Written by handlers and by the tasks that are the calls' time; read by summaries.
#[derive(Debug)]
struct Shared {
    options: StubOptions,
    started: Instant,
    book: Mutex<Book>,
    luck: Mutex<fastrand::Rng>,
    stop: CancellationToken,
    /// Each call's time.
    calls: TaskTracker,
}

/// Starts a stub downstream.
///
/// # Errors
/// Where the address cannot be listened on.
pub async fn start(options: StubOptions) -> io::Result<Stub> {
    let listener = TcpListener::bind(options.listen).await?;
    let addr = listener.local_addr()?;
    let stop = CancellationToken::new();
    let shared = Arc::new(Shared {
        started: Instant::now(),
        book: Mutex::new(Book::new(options.limit, options.log_max)),
        luck: Mutex::new(fastrand::Rng::with_seed(options.seed)),
        stop: stop.clone(),
        calls: TaskTracker::new(),
        options,
    });
    let router = Router::new()
        .route("/call", any(call))
        .route("/calls/{key}", get(standing))
        .route("/summary", get(summary))
        .route("/reset", post(reset))
        .route("/limit", post(limit))
        .layer(DefaultBodyLimit::max(2 * crate::model::PAYLOAD_MAX))
        .with_state(Arc::clone(&shared));
    let service = router.into_make_service_with_connect_info::<Tap>();
    let server =
        axum::serve(Listener(listener), service).with_graceful_shutdown(stop.clone().cancelled_owned());
    let server = tokio::spawn(async {
        // Documented to never fail.
        let _ = server.await;
    });
    Ok(Stub { addr, shared, server, _stop: stop.drop_guard() })
}

impl Stub {
    /// Where calls go.
    pub fn url(&self) -> String {
        format!("http://{}/call", self.addr)
    }

    /// What it has counted so far.
    pub fn summary(&self) -> Summary {
        self.shared.book().summary(usize::MAX)
    }

    /// Forgets everything but the calls in flight.
    pub fn reset(&self) {
        self.shared.book().reset();
    }

    /// Microseconds since its start, as in its log.
    pub fn now_us(&self) -> u64 {
        self.shared.now_us()
    }

    /// From now on more calls at once than this are overruns.
    pub fn set_limit(&self, limit: Option<u32>) {
        self.shared.book().limit = limit;
    }

    /// Ends it, cutting off whatever is in flight, and says what it has counted.
    pub async fn shutdown(mut self) -> Summary {
        self.shared.stop.cancel();
        self.shared.calls.close();
        self.shared.calls.wait().await;
        // A client that never finishes its request cannot hold us.
        if timeout(Duration::from_secs(1), &mut self.server).await.is_err() {
            self.server.abort();
        }
        self.summary()
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// A call's time. It runs on its own, so that it stays counted whatever becomes of the caller, and it leaves the
    /// count before anyone can hear of its end. False where it was broken off.
    async fn take_time(self: Arc<Self>, call: Call, plan: Plan, gone: CancellationToken) -> bool {
        let full = tokio::select! {
            () = sleep(plan.span) => true,
            () = gone.cancelled(), if self.options.stop_on_disconnect => false,
            () = self.stop.cancelled() => false,
        };
        self.book().leave(&call, self.now_us(), full && plan.succeeds());
        full
    }
}

/// The caller, as long as it waits for its answer. Dropped without [`Caller::served`], it has gone.
struct Caller {
    shared: Arc<Shared>,
    call: u64,
    gone: CancellationToken,
    waits: bool,
}

impl Caller {
    /// It has its answer, or we hung up.
    fn served(&mut self, status: Option<StatusCode>) {
        self.waits = false;
        self.shared.book().answered(self.call, status.map(|status| status.as_u16()));
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.waits {
            self.shared.book().caller_gone(self.call);
            self.gone.cancel();
        }
    }
}

async fn call(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(tap): ConnectInfo<Tap>,
    Query(query): Query<Ask>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let said = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let attempt = said("x-permitq-attempt").and_then(|text| text.parse().ok());
    let plan = match Ask::from_body(&body).map(|ask| query.or(ask)) {
        Ok(ask) => {
            let mut luck = shared.luck.lock().unwrap_or_else(PoisonError::into_inner);
            ask.plan(&shared.options, attempt, &mut luck)
        }
        Err(error) => return answer(StatusCode::BAD_REQUEST, &error),
    };
    let arrived = shared.book().arrive(Entry {
        key: said("idempotency-key").map(str::to_owned),
        biz_key: said("x-permitq-key").map(str::to_owned),
        attempt,
        token: said("x-permitq-fencing-token").and_then(|text| text.parse().ok()),
        start_us: shared.now_us(),
        fault: plan.fault.map(|fault| fault.to_string()),
        ..Entry::default()
    });
    let Some(call) = arrived else {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "overrun: more calls than the limit");
    };
    let gone = CancellationToken::new();
    let caller = Caller { shared: Arc::clone(&shared), call: call.id, gone: gone.clone(), waits: true };
    let time = shared.calls.spawn(Arc::clone(&shared).take_time(call, plan, gone));
    serve(&plan, caller, time, &tap).await
}

/// Waits for the answer's moment and gives it, or hangs up.
async fn serve(plan: &Plan, mut caller: Caller, mut time: JoinHandle<bool>, tap: &Tap) -> Response {
    if plan.fault == Some(Fault::Drip) {
        return drip(plan.span, caller, time, tap.clone());
    }
    let stop = caller.shared.stop.clone();
    let due = tokio::select! {
        ended = &mut time => ended.unwrap_or(false),
        () = sleep(plan.answer), if plan.answer < plan.span => true,
        () = stop.cancelled() => false,
    };
    match plan.fault {
        fault if !due || matches!(fault, Some(Fault::Hang | Fault::Reset)) => {
            if fault == Some(Fault::Reset) {
                tap.reset();
            } else {
                tap.close();
            }
            caller.served(None);
            // Never sent: the connection is broken.
            StatusCode::NO_CONTENT.into_response()
        }
        Some(Fault::Cut) => {
            caller.served(None);
            cut()
        }
        _ => {
            let status = plan.status();
            caller.served(Some(status));
            let mut response = answer(status, status.canonical_reason().unwrap_or("?"));
            if let Some(seconds) = plan.retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

fn answer(status: StatusCode, said: &str) -> Response {
    (status, Json(json!({ "ok": status.is_success(), "said": said }))).into_response()
}

/// A promise of more than comes.
fn cut() -> Response {
    let half = stream::unfold(0, |step| async move {
        if step > 0 {
            // The half is on its way before the connection breaks.
            tokio::task::yield_now().await;
            return Some((Err(io::Error::other("cut off on request")), step));
        }
        Some((Ok("{\"ok\":"), step + 1))
    });
    ([(header::CONTENT_LENGTH, "11"), (header::CONTENT_TYPE, "application/json")], Body::from_stream(half))
        .into_response()
}

/// White space for as long as the call takes, then its JSON.
fn drip(span: Duration, caller: Caller, time: JoinHandle<bool>, tap: Tap) -> Response {
    let pause = (span / 16).clamp(Duration::from_millis(5), Duration::from_secs(1));
    let drops = stream::unfold(Some((caller, time)), move |state| {
        let tap = tap.clone();
        async move {
            let (mut caller, mut time) = state?;
            tokio::select! {
                full = &mut time => {
                    let full = full.unwrap_or(false);
                    caller.served(full.then_some(StatusCode::OK));
                    if !full {
                        tap.close();
                    }
                    Some((Ok::<_, Infallible>("{\"ok\":true}"), None))
                }
                () = sleep(pause) => Some((Ok(" "), Some((caller, time)))),
            }
        }
    });
    ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(drops)).into_response()
}

async fn standing(
    State(shared): State<Arc<Shared>>,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> Json<serde_json::Value> {
    let token = headers.get("x-permitq-fencing-token").and_then(|value| value.to_str().ok()?.parse().ok());
    let found = shared.book().find(&key, token).map(|entry| (entry.end_us, entry.token));
    Json(match found {
        Some((end, token)) => {
            json!({"state": if end.is_some() { "done" } else { "running" }, "fencing_token": token})
        }
        None => json!({"state": "unknown"}),
    })
}

#[derive(Deserialize)]
struct SummaryAsk {
    log: Option<usize>,
}

async fn summary(State(shared): State<Arc<Shared>>, Query(ask): Query<SummaryAsk>) -> Json<Summary> {
    let summary = shared.book().summary(ask.log.unwrap_or(usize::MAX));
    Json(summary)
}

async fn reset(State(shared): State<Arc<Shared>>) {
    shared.book().reset();
}

#[derive(Deserialize)]
struct LimitAsk {
    n: Option<u32>,
}

async fn limit(State(shared): State<Arc<Shared>>, Query(ask): Query<LimitAsk>) {
    shared.book().limit = ask.n;
}
