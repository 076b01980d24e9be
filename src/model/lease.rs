//! The lease of a consumer, as arithmetic.
//!
//! ```text
//!  beat sent          beat confirmed                 local deadline      lease_until
//!  ──┬────────────────────┬───────────────────────────────┬──────────────────┬────────► time
//!    └──────────── lease ─────────────────────────────────┼──────────────────┘ (database clock,
//!                                                          └─ slack ──────────┘  stamped after the send)
//! ```
//!
//! The database stamps `lease_until` after the beat was sent, so a deadline counted from the *send* is always earlier,
//! whatever the answer's delay.

use std::time::Duration;

use crate::clock::Instant;

/// A step of the database's clock that is still taken for noise.
pub const STEP_SLACK: Duration = Duration::from_secs(2);

/// What this process knows of its own lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    duration: Duration,
    sent: Instant,
}

impl Lease {
    /// Registration counts as the first beat; `sent` is the instant before it was sent.
    pub fn new(duration: Duration, sent: Instant) -> Self {
        Self { duration, sent }
    }

    /// A beat that was sent at `sent` has been confirmed.
    pub fn confirmed(&mut self, sent: Instant) {
        self.sent = self.sent.max(sent);
    }

    /// The instant of the last confirmed beat's sending.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// From here on the reclaimer may take our tasks: hang up where hanging up stops the downstream, claim nothing.
    /// The slack is a tenth of the lease, at least a second, at most half the lease.
    pub fn deadline(&self) -> Instant {
        let slack = (self.duration / 10).max(Duration::from_secs(1)).min(self.duration / 2);
        self.sent + self.duration.saturating_sub(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn the_deadline_counts_from_the_send_and_never_moves_back() {
        let clock = Clock::held();
        let start = clock.now();
        let mut lease = Lease::new(Duration::from_mins(2), start);
        assert_eq!(lease.deadline().since(start), Duration::from_secs(108));
        clock.advance(Duration::from_secs(15));
        lease.confirmed(clock.now());
        lease.confirmed(start);
        assert_eq!(lease.deadline().since(start), Duration::from_secs(123));
        let short = Lease::new(Duration::from_secs(1), start);
        assert_eq!(short.deadline().since(start), Duration::from_millis(500));
    }
}
