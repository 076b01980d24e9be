//! The one clock that judges leases and start windows.
//!
//! `CLOCK_BOOTTIME` also runs while the host is suspended, so a process that was frozen, migrated or asleep sees that
//! its time is over (Linux `clock_gettime(2)`). It is passed in, so that tests can hold it. Instants that are stored
//! come from the database's clock instead, and mere pauses from tokio's timers.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// An instant on [`Clock`]: time since the host booted, suspend included. Never stored, never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// The time from `earlier` to `self`; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// Tells [`Instant`]s. Clones tell the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Boot,
    /// Nanoseconds, moved by a test.
    Held(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that stands still until [`Clock::advance`] moves it.
    pub fn held() -> Self {
        Self(Source::Held(Arc::new(AtomicU64::new(1_000_000_000))))
    }

    /// Moves a held clock. Does nothing to the real one.
    pub fn advance(&self, span: Duration) {
        if let Source::Held(nanos) = &self.0 {
            nanos.fetch_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
        }
    }

    /// Now.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Boot => {
                let time = clock_gettime(ClockId::Boottime);
                let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
                let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
                Instant(Duration::new(seconds, nanos))
            }
            Source::Held(nanos) => Instant(Duration::from_nanos(nanos.load(Ordering::SeqCst))),
        }
    }
}
