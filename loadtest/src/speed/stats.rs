//! Medians and the like.

use serde::Serialize;

/// What a set of durations looks like, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "scripts see the unit")]
pub struct Spread {
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile (nearest rank).
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Spread {
    /// Of microseconds; all zero where there are none.
    pub(super) fn of(mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        let rank = |share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a length"
            )]
            let index = (share * micros.len() as f64).ceil() as usize;
            micros.get(index.saturating_sub(1)).map_or(0.0, |micros| millis(*micros))
        };
        Self { p50_ms: rank(0.5), p99_ms: rank(0.99), max_ms: rank(1.0) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "median {:.2} ms, p99 {:.2} ms, at most {:.2} ms", self.p50_ms, self.p99_ms, self.max_ms)
    }
}

/// Microseconds as milliseconds.
pub(super) fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// Microseconds as seconds.
pub(super) fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let spread = Spread::of((1..=100).rev().map(|n| n * 1000).collect());
        assert_eq!(spread, Spread { p50_ms: 50.0, p99_ms: 99.0, max_ms: 100.0 });
        assert_eq!(Spread::of(vec![7000]), Spread { p50_ms: 7.0, p99_ms: 7.0, max_ms: 7.0 });
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }
}
