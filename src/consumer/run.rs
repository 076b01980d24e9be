//! One claim to one outcome.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::Service;
use crate::clock::Clock;
use crate::downstream::Call;
use crate::model::{Claim, End, Ended, Outcome, Verdict, Why};

/// Calls the downstream once for this claim. `abort` gives the call up; the claim itself ends in every case.
pub(super) async fn run(
    claim: Claim,
    service: Service,
    installation: &str,
    clock: &Clock,
    abort: &CancellationToken,
) -> Ended {
    let limits = service.limits;
    // The last look at the clock before the request is first polled: a permit's bound counts on it.
    let called = clock.now();
    let late = called.since(claim.sent);
    let (outcome, called) = if late > limits.start_window || abort.is_cancelled() {
        let reason = format!("not started within {:?} of its claim", limits.start_window);
        (Outcome::not_started(reason), None)
    } else {
        let call = Call {
            attempt: claim.attempt,
            attempt_no: claim.standing.attempts,
            kind: claim.kind.clone(),
            biz_key: claim.biz_key.clone(),
            payload: claim.payload.clone(),
            idempotency_key: format!("{installation}-{}", claim.attempt.task),
        };
        let limit = claim.timeout.map_or(limits.call_timeout, |own| own.min(limits.call_timeout));
        let outcome = tokio::select! {
            biased;
            outcome = answer(&call, &service, limit) => outcome,
            () = abort.cancelled() => given_up(
                limits.stops_on_disconnect,
                Why::Shutdown,
                Verdict::HandedBack { error: "given up by the consumer before its answer came".to_owned() },
            ),
        };
        (outcome, Some(called))
    };
    claim.end(&outcome, called, &limits.retry, fastrand::f64())
}

async fn answer(call: &Call, service: &Service, limit: Duration) -> Outcome {
    match tokio::time::timeout(limit, AssertUnwindSafe(service.handler.call(call)).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_panic)) => Outcome::unclear(Why::Handler, "the handler panicked"),
        Err(_) => given_up(
            service.limits.stops_on_disconnect,
            Why::Timeout,
            Verdict::Retry { error: format!("no answer within {limit:?}"), after: None },
        ),
    }
}

/// We hang up ourselves: the end is clear only where that stops the downstream.
fn given_up(stops_on_disconnect: bool, why: Why, verdict: Verdict) -> Outcome {
    let end = if stops_on_disconnect { End::Clear } else { End::Unclear(why) };
    Outcome { verdict, end, status: None }
}
