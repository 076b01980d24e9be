//! The peak of concurrently held permits, computed from the attempt log: a sweep over half-open intervals.
//!
//! A permit is held from its claim (included) to its release (excluded); events come ordered by instant, and at one
//! instant caps first, then releases, then claims. An *overrun* is a claim that brought the number of held permits above
//! every cap that was in force within the second before it: lowering the cap interrupts nobody, and a claim that was
//! under way when it fell is not a breach.

use std::collections::VecDeque;

/// What happened at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The cap was set.
    Limit(i64),
    /// A permit was freed.
    Free,
    /// A permit was taken.
    Take,
}

/// Runs over the events in their order.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    held: i64,
    peak: i64,
    overruns: u64,
    /// When each cap that counts was set; the last is in force.
    limits: VecDeque<(i64, i64)>,
}

impl Sweep {
    /// How long after a cap was lowered a claim may still follow the old one, in microseconds.
    pub const GRACE: i64 = 1_000_000;

    /// The next event, `at` in microseconds.
    pub fn push(&mut self, at: i64, moved: Moved) {
        match moved {
            Moved::Limit(max) => self.limits.push_back((at, max)),
            Moved::Free => self.held -= 1,
            Moved::Take => {
                self.held += 1;
                self.peak = self.peak.max(self.held);
                // A cap counts until a second after its successor came.
                while self.limits.get(1).is_some_and(|(since, _)| since + Self::GRACE < at) {
                    self.limits.pop_front();
                }
                let allowed = self.limits.iter().map(|(_, max)| *max).max();
                self.overruns += u64::from(allowed.is_some_and(|max| self.held > max));
            }
        }
    }

    /// The most permits held at one instant.
    pub fn peak(&self) -> i64 {
        self.peak
    }

    /// Claims above the cap.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Moved::{Free, Limit, Take};

    fn sweep(events: &[(i64, Moved)]) -> (i64, u64) {
        let mut sweep = Sweep::default();
        for (at, moved) in events {
            sweep.push(*at, *moved);
        }
        (sweep.peak(), sweep.overruns())
    }

    #[test]
    fn an_exchange_at_one_instant_is_no_overlap() {
        assert_eq!(sweep(&[(0, Limit(1)), (1, Take), (5, Free), (5, Take), (9, Free)]), (1, 0));
    }

    #[test]
    fn one_claim_too_many_is_found() {
        assert_eq!(sweep(&[(0, Limit(1)), (1, Take), (5, Take), (5, Free)]), (2, 1));
    }

    #[test]
    fn lowering_the_cap_condemns_only_claims_a_second_later() {
        let before = [(0, Limit(2)), (1, Take), (2, Take), (3_000_000, Limit(1)), (3_500_000, Free)];
        let with = |at| sweep(&[before.as_slice(), &[(at, Take)]].concat());
        assert_eq!(with(3_600_000), (2, 0));
        assert_eq!(with(4_100_000), (2, 1));
    }
}
