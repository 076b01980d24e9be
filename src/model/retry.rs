//! When a failed attempt runs again: exponential backoff with full jitter, capped, and on top of the downstream's own
//! `Retry-After`: whoever was told the same must not come back at the same instant.
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
    /// The bound never grows beyond this, and a `Retry-After` counts for no more.
    pub backoff_cap: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: Duration::from_secs(5), backoff_cap: Duration::from_mins(10) }
    }
}

impl Retry {
    /// How long to wait after the `attempt`-th attempt (counted from 1) failed. `luck` is drawn evenly from `0.0..1.0`;
    /// `after` is what the downstream asked for. At most twice `backoff_cap`.
    pub fn delay(&self, attempt: u32, luck: f64, after: Option<Duration>) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let bound = self.backoff.saturating_mul(1 << doublings).min(self.backoff_cap);
        let asked = after.unwrap_or_default().min(self.backoff_cap);
        let jitter = Duration::try_from_secs_f64(bound.as_secs_f64() * luck.clamp(0.0, 1.0)).unwrap_or(bound);
        asked.saturating_add(jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_delay_overflows_or_leaves_its_bounds(
            attempt: u32,
            luck: f64,
            backoff: Duration,
            backoff_cap: Duration,
            after: Option<Duration>,
        ) {
            let delay = Retry { max_attempts: 1, backoff, backoff_cap }.delay(attempt, luck, after);
            let asked = after.unwrap_or_default().min(backoff_cap);
            prop_assert!(delay >= asked);
            // What a float has rounded, doubled.
            let most = asked.saturating_add(backoff_cap);
            prop_assert!(delay.as_secs_f64() <= most.as_secs_f64() * (1.0 + 1e-9));
        }
    }

    #[test]
    fn equal_retry_afters_are_spread() {
        let retry =
            Retry { max_attempts: 9, backoff: Duration::from_secs(2), backoff_cap: Duration::from_secs(8) };
        let after = Some(Duration::from_secs(5));
        let delays = [0.0, 0.25, 0.5, 1.0].map(|luck| retry.delay(1, luck, after).as_millis());
        assert_eq!(delays, [5000, 5500, 6000, 7000]);
        // What is asked for is capped, and spread all the same.
        let week = Some(Duration::from_hours(7 * 24));
        assert_eq!([0.0, 0.5].map(|luck| retry.delay(9, luck, week).as_secs()), [8, 12]);
    }

    #[test]
    fn the_bound_doubles() {
        let retry =
            Retry { max_attempts: 9, backoff: Duration::from_secs(1), backoff_cap: Duration::from_secs(10) };
        let bounds = [1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 1024, 5000]
            .map(|attempt| retry.delay(attempt, 1.0, None).as_secs());
        assert_eq!(bounds, [1, 2, 4, 8, 10, 10, 10, 10, 10, 10, 10, 10, 10]);
    }
}
