//! When a failed attempt runs again: exponential backoff with full jitter, capped, never before the downstream's
//! own `Retry-After`.
//!
//! Full jitter draws the delay evenly from zero to the exponential bound, which spreads a fleet's retries best; see
//! Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

use std::time::Duration;

/// The retry policy of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, the first included; at least 1.
    pub max_attempts: u32,
    /// The bound of the first delay; doubles with every attempt.
    pub backoff: Duration,
    /// The bound never grows beyond this, and neither does a `Retry-After`.
    pub backoff_cap: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: Duration::from_secs(5), backoff_cap: Duration::from_mins(10) }
    }
}

impl Retry {
    /// How long to wait after the `attempt`-th attempt (counted from 1) failed. `luck` is drawn evenly from `0.0..1.0`;
    /// `after` is what the downstream asked for.
    pub fn delay(&self, attempt: u32, luck: f64, after: Option<Duration>) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let bound = self.backoff.saturating_mul(1 << doublings).min(self.backoff_cap);
        let asked = after.unwrap_or_default().min(self.backoff_cap);
        bound.mul_f64(luck.clamp(0.0, 1.0)).max(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn delay_stays_within_the_cap_and_honours_retry_after(
            attempt in 0u32..100_000, luck in 0.0f64..1.0, after in proptest::option::of(0u64..10_000),
        ) {
            let retry = Retry::default();
            let after = after.map(Duration::from_secs);
            let delay = retry.delay(attempt, luck, after);
            prop_assert!(delay <= retry.backoff_cap);
            prop_assert!(delay >= after.unwrap_or_default().min(retry.backoff_cap));
        }
    }

    #[test]
    fn the_bound_doubles() {
        let retry =
            Retry { max_attempts: 9, backoff: Duration::from_secs(1), backoff_cap: Duration::from_secs(10) };
        let bounds = [1, 2, 3, 4, 5, 6].map(|attempt| retry.delay(attempt, 1.0, None).as_secs());
        assert_eq!(bounds, [1, 2, 4, 8, 10, 10]);
    }
}
