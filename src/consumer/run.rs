//! One claim to one outcome.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::Service;
use crate::clock::Clock;
use crate::downstream::{Call, within};
use crate::model::{Claim, End, Ended, Outcome, Signal, Verdict, Why};

/// What a call is to its downstream.
pub(super) struct Of {
    pub(super) downstream: String,
    /// The one call that may tell whether it is up again.
    pub(super) probe: bool,
}

/// Calls the downstream once for this claim. `abort` gives the call up; the claim itself ends in every case.
pub(super) async fn run(
    claim: Claim,
    service: Service,
    of: Of,
    installation: &str,
    clock: &Clock,
    abort: &CancellationToken,
) -> Ended {
    let limits = service.limits;
    // The last look at the clock before the request is first polled: a permit's bound counts on it.
    let called = clock.now();
    let late = called.since(claim.sent);
    let (outcome, called) = if late > limits.start_window || abort.is_cancelled() {
        let reason = if abort.is_cancelled() {
            "given up before it was started".to_owned()
        } else {
            format!("not started within {:?} of its claim", limits.start_window)
        };
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
    let down = match &outcome.verdict {
        Verdict::Down { after, .. } => Some(after.unwrap_or_default().min(limits.retry.backoff_cap)),
        _ => None,
    };
    // A call that we gave up ourselves tells nothing.
    let up = of.probe && called.is_some() && !matches!(outcome.verdict, Verdict::HandedBack { .. });
    let signal = (down.is_some() || up).then_some(Signal { downstream: of.downstream, down });
    Ended { signal, ..claim.end(&outcome, called, &limits.retry, fastrand::f64()) }
}

async fn answer(call: &Call, service: &Service, limit: Duration) -> Outcome {
    match within(limit, AssertUnwindSafe(service.handler.call(call)).catch_unwind()).await {
        Some(Ok(outcome)) => outcome,
        Some(Err(_panic)) => Outcome::unclear(Why::Handler, "the handler panicked"),
        None => given_up(
            service.limits.stops_on_disconnect,
            Why::Timeout,
            Verdict::Retry { error: format!("no answer within {limit:?}"), after: None },
        ),
    }
}

/// We hang up ourselves: the permit is free at once only where that stops the downstream.
fn given_up(stops_on_disconnect: bool, why: Why, verdict: Verdict) -> Outcome {
    let end = if stops_on_disconnect { End::Stopped } else { End::Unclear(why) };
    Outcome { verdict, end, status: None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::downstream::Handler;
    use crate::model::{Attempt, Limits, OnAbandon, Standing, State};

    /// Counts its calls and then does what it is told.
    struct Does(AtomicU32, fn() -> Option<Outcome>);

    #[async_trait]
    impl Handler for Does {
        async fn call(&self, _call: &Call) -> Outcome {
            self.0.fetch_add(1, Ordering::SeqCst);
            match (self.1)() {
                Some(outcome) => outcome,
                None => std::future::pending().await,
            }
        }
    }

    struct Seen {
        ended: Ended,
        calls: u32,
    }

    /// One claim that was sent `ago`, with a timeout of its own of 50 ms.
    async fn seen(
        does: fn() -> Option<Outcome>,
        limits: Limits,
        ago: Duration,
        abort: &CancellationToken,
    ) -> Seen {
        let clock = Clock::held();
        let claim = Claim {
            attempt: Attempt { task: 1, claim_no: 1 },
            kind: "a".to_owned(),
            semaphore: "default".to_owned(),
            biz_key: None,
            payload: "{}".to_owned(),
            standing: Standing { attempts: 1, max_attempts: 3, on_abandon: OnAbandon::Retry },
            timeout: Some(Duration::from_millis(50)),
            sent: clock.now(),
        };
        clock.advance(ago);
        let handler = Arc::new(Does(AtomicU32::new(0), does));
        let service = Service { semaphore: "default".to_owned(), limits, handler: handler.clone() };
        let of = Of { downstream: "a".to_owned(), probe: false };
        let ended = run(claim, service, of, "here", &clock, abort).await;
        Seen { ended, calls: handler.0.load(Ordering::SeqCst) }
    }

    fn never() -> CancellationToken {
        CancellationToken::new()
    }

    #[tokio::test]
    async fn a_claim_older_than_its_start_window_is_never_called() {
        let limits = Limits::default();
        let ok = || Some(Outcome::succeeded(None));
        let in_time = seen(ok, limits, limits.start_window, &never()).await;
        assert_eq!((in_time.calls, in_time.ended.settlement.state), (1, State::Succeeded));
        let late = seen(ok, limits, limits.start_window + Duration::from_millis(1), &never()).await;
        assert_eq!((late.calls, late.ended.called_after), (0, None));
        let settlement = late.ended.settlement;
        assert_eq!((settlement.state, settlement.attempts, settlement.cooling), (State::Pending, 0, None));
    }

    #[tokio::test]
    async fn a_call_is_given_up_at_the_tasks_own_timeout_and_cools() {
        let given_up = seen(|| None, Limits::default(), Duration::ZERO, &never()).await.ended.settlement;
        assert_eq!((given_up.state, given_up.cooling), (State::Scheduled, Some(Why::Timeout)));
        assert_eq!(given_up.error.as_deref(), Some("no answer within 50ms"));
    }

    #[tokio::test]
    async fn hanging_up_is_a_clear_end_only_where_it_stops_the_downstream() {
        for (stops_on_disconnect, timed_out, aborted) in
            [(false, Some(Why::Timeout), Some(Why::Shutdown)), (true, None, None)]
        {
            let limits = Limits { stops_on_disconnect, ..Limits::default() };
            let timeout = seen(|| None, limits, Duration::ZERO, &never()).await.ended.settlement;
            assert_eq!(timeout.cooling, timed_out);
            let abort = CancellationToken::new();
            let (abort_soon, given_up) = (abort.clone(), seen(|| None, limits, Duration::ZERO, &abort));
            let (given_up, ()) = tokio::join!(given_up, async move { abort_soon.cancel() });
            let settlement = given_up.ended.settlement;
            assert_eq!((settlement.cooling, settlement.attempts), (aborted, 0), "handed back");
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_unclear_end_like_any_other() {
        let panicked = seen(|| panic!("boom"), Limits::default(), Duration::ZERO, &never()).await;
        let settlement = panicked.ended.settlement;
        assert_eq!((settlement.cooling, settlement.outcome), (Some(Why::Handler), "failed"));
    }
}
