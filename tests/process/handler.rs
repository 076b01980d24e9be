//! A consumer inside another program, and handlers that do it harm.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use permitq::clock::Clock;
use permitq::consumer::{Consumer, Exit, Options, Service, Services};
use permitq::downstream::{Call, Handler};
use permitq::model::{Limits, Outcome, Retry, State};
use permitq::shutdown::{self, Trigger};
use tracing::subscriber::{Interest, Subscriber, set_global_default};
use tracing::{Event, Metadata};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::support::Db;
use crate::support::site::until;

contract! {
    a_handler_that_panics_keeps_the_books,
    a_blocked_loop_keeps_its_lease,
    a_signal_between_two_turns_counts,
}

/// Serves every kind with this handler, on a thread with one runtime of one thread.
pub(super) fn start(db: &Db, handler: impl Handler, options: Options) -> (Trigger, JoinHandle<Exit>) {
    let (trigger, run) = consumer(db, handler, options);
    (trigger, std::thread::spawn(run))
}

fn consumer(
    db: &Db,
    handler: impl Handler,
    options: Options,
) -> (Trigger, impl FnOnce() -> Exit + Send + 'static) {
    let retry = Retry { backoff: Duration::from_millis(10), ..Retry::default() };
    let limits = Limits { retry, ..Limits::default() };
    let mut services = Services::default();
    services.add_rest(Service { semaphore: "default".to_owned(), limits, handler: Arc::new(handler) });
    let consumer = Consumer { database: db.database.clone(), services, options, clock: Clock::default() };
    let (trigger, shutdown) = shutdown::channel();
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(consumer.run(shutdown)).unwrap()
    };
    (trigger, run)
}

/// Blocks the one thread of its consumer's runtime, and so its loop, until it is let go.
pub(super) struct Blocks(pub(super) Arc<AtomicBool>);

#[async_trait]
impl Handler for Blocks {
    async fn call(&self, _call: &Call) -> Outcome {
        while !self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Outcome::succeeded(None)
    }
}

/// Never answers.
struct Waits;

#[async_trait]
impl Handler for Waits {
    async fn call(&self, _call: &Call) -> Outcome {
        std::future::pending().await
    }
}

struct Panics;

#[async_trait]
impl Handler for Panics {
    async fn call(&self, call: &Call) -> Outcome {
        assert!(call.attempt_no > 1, "the first attempt panics");
        Outcome::succeeded(None)
    }
}

/// What it has begun may go on, so its permit cools; the task runs again.
async fn a_handler_that_panics_keeps_the_books(db: Db) {
    let id = db.enqueue(1).await[0];
    let poll = Duration::from_millis(200);
    let (trigger, thread) = start(&db, Panics, Options { poll, ..Options::default() });
    until("it is done", async || {
        db.conservation().await;
        db.task(id).await.state == State::Succeeded
    })
    .await;
    trigger.advance();
    assert_eq!(thread.join().unwrap().code(), 0);
    db.holds(1).await;
    let holder = db.store().holders().await.unwrap().remove(0);
    assert_eq!((holder.task, holder.claim_no, holder.why.as_deref()), (Some(id), Some(1), Some("handler")));
    let log = db.store().attempts(id).await.unwrap();
    let outcomes: Vec<_> = log.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["failed", "succeeded"]);
    assert_eq!(db.cool_down().await, 1);
}

/// The heart has a thread and a connection of its own.
async fn a_blocked_loop_keeps_its_lease(db: Db) {
    let id = db.enqueue(1).await[0];
    let let_go = Arc::new(AtomicBool::new(false));
    let options = Options {
        lease: Duration::from_secs(4),
        heartbeat: Duration::from_millis(200),
        on_stuck: || panic!("it is not stuck for a whole lease"),
        ..Options::default()
    };
    let (trigger, thread) = start(&db, Blocks(let_go.clone()), options);
    until("the call", async || db.task(id).await.state == State::Running).await;
    let lease = async || db.store().consumers().await.unwrap()[0].lease_until;
    for _ in 0..5 {
        let before = lease().await;
        until("a beat", async || lease().await > before).await;
    }
    assert!(db.store().expired().await.unwrap().is_empty());
    let_go.store(true, Ordering::SeqCst);
    trigger.advance();
    assert_eq!(thread.join().unwrap().code(), 0);
    let task = db.task(id).await;
    assert_eq!((task.state, task.claim_no), (State::Succeeded, 1));
    db.holds(0).await;
}

thread_local! {
    /// Who is told to stop while the loop of this thread starts a call, and so not while it waits.
    static AT_CLAIM: RefCell<Option<Trigger>> = const { RefCell::new(None) };
}

/// Listens on all threads: subscribers that come and go may miss an event.
struct AtClaim;

impl<S: Subscriber> Layer<S> for AtClaim {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let claimed = metadata.target().starts_with("permitq") && metadata.fields().field("kind").is_some();
        if claimed { Interest::always() } else { Interest::never() }
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        AT_CLAIM.with_borrow(|trigger| {
            if let Some(trigger) = trigger {
                trigger.advance();
            }
        });
    }
}

/// The grace counts from it, all the same.
async fn a_signal_between_two_turns_counts(db: Db) {
    static LISTENS: Once = Once::new();
    let id = db.enqueue(1).await[0];
    let options = Options { grace: Duration::from_millis(300), ..Options::default() };
    let (trigger, run) = consumer(&db, Waits, options);
    LISTENS.call_once(|| set_global_default(tracing_subscriber::registry().with(AtClaim)).unwrap());
    let thread = std::thread::spawn(|| {
        AT_CLAIM.set(Some(trigger));
        run()
    });
    until("its end", async || thread.is_finished()).await;
    assert_eq!(thread.join().unwrap().code(), 3);
    let task = db.task(id).await;
    assert_eq!((task.state, task.claim_no, task.attempts), (State::Pending, 1, 0));
    db.holds(1).await;
}
