//! What is called: a [`Handler`] takes one [`Call`] to its [`Outcome`].
//!
//! The consumer calls this folder, once per attempt, inside the attempt's own limit. A handler knows nothing of
//! permits, leases or the database, and must never hide a second request behind one call.

mod classify;
mod http;
mod probe;
mod secrets;
#[cfg(feature = "cli")]
pub mod stub;
mod text;

pub use classify::{DOWN_STATUSES, MAX_RESULT_BYTES, Rules, Seen, UNCLEAR_STATUSES, classify, retry_after};
pub use http::{BadHttp, Http, HttpOptions};
pub use probe::{Probe, Probed, Question};

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use crate::model::{Attempt, Outcome};

/// One call of the downstream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Task and fencing token.
    pub attempt: Attempt,
    /// Which attempt of the task's budget this is, counted from 1.
    pub attempt_no: u32,
    /// Which handler or downstream serves it.
    pub kind: String,
    /// The caller's own name for the task.
    pub biz_key: Option<String>,
    /// JSON text.
    pub payload: String,
    /// The same on every attempt of the task, so that the downstream can tell a repeat: `<installation>-<task id>`.
    pub idempotency_key: String,
}

/// Waits for at most `limit`. A timer that fires after a freeze fires before anybody has looked at the socket, where the
/// answer may have been waiting: so the future gets a last moment. `None` where it is not done even then.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    match timeout(limit, &mut future).await {
        Ok(done) => Some(done),
        Err(_) => timeout(LAST_MOMENT, future).await.ok(),
    }
}

const LAST_MOMENT: Duration = Duration::from_millis(50);

/// Serves the calls of a kind.
///
/// The future is dropped where the consumer gives a call up (timeout, abort); what that means for the permit is the
/// consumer's business.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Calls once, reads the answer to its end, and says how it ended.
    async fn call(&self, call: &Call) -> Outcome;
}
