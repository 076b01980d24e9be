//! What becomes of an instant that is due: fired, or passed by as a misfire.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::when::before;
use super::{Plan, When};

/// What is done with instants that nobody fired in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MisfirePolicy {
    /// One run for the last of them.
    #[default]
    FireOnce,
    /// None: it goes on with the next that is in time.
    Skip,
    /// A run for each, up to a bound; the oldest beyond it are passed by.
    FireAll,
}

impl MisfirePolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::FireOnce, Self::Skip, Self::FireAll];

    /// The word in SQL, CLI and API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FireOnce => "fire_once",
            Self::Skip => "skip",
            Self::FireAll => "fire_all",
        }
    }
}

impl FromStr for MisfirePolicy {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|policy| policy.as_str() == word);
        known.ok_or_else(|| format!("{word:?} is no misfire policy"))
    }
}

/// When an instant counts as missed, and what then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfire {
    /// What is done.
    pub policy: MisfirePolicy,
    /// Late by more than this.
    pub after: Duration,
    /// The most runs of `fire_all`.
    pub most: u32,
}

impl Default for Misfire {
    fn default() -> Self {
        Self { policy: MisfirePolicy::default(), after: Duration::from_mins(1), most: 100 }
    }
}

/// Instants that are passed by together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The first.
    pub first: Timestamp,
    /// The last.
    pub last: Timestamp,
    /// How many; at [`COUNT_MAX`], so many or more.
    pub count: u32,
}

/// Instants are not counted beyond.
pub const COUNT_MAX: u32 = 10_000;

/// What becomes of a trigger that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Passed by as misfires.
    pub missed: Option<Passed>,
    /// Fired, in this order.
    pub fire: Vec<Timestamp>,
    /// Due next. After a run of a fixed delay that follows from its end.
    pub next: Option<Timestamp>,
}

/// Decides about everything that is due from `planned`, which has come, up to `now`.
pub fn decide(when: &When, planned: Timestamp, now: Timestamp, misfire: &Misfire) -> Decision {
    let late = now.duration_since(planned).unsigned_abs();
    if planned >= now || late <= misfire.after {
        return Decision { missed: None, fire: vec![planned], next: when.after(planned) };
    }
    let fire = match misfire.policy {
        MisfirePolicy::FireOnce => latest(when, planned, now, 1),
        MisfirePolicy::FireAll => latest(when, planned, now, misfire.most.max(1) as usize),
        MisfirePolicy::Skip => {
            let in_time = now.checked_sub(misfire.after).unwrap_or(Timestamp::MIN);
            let missed = passed(when, planned, in_time);
            let next = match when.plan {
                // Nothing ran whose end it could follow.
                Plan::FixedDelay(_) => when.after_end(now),
                _ => when.after(before(in_time)),
            };
            return Decision { missed, fire: Vec::new(), next };
        }
    };
    let first = fire.first().copied().unwrap_or(planned);
    let next = when.after(fire.last().copied().unwrap_or(planned));
    Decision { missed: passed(when, planned, first), fire, next }
}

/// The instants from `first`, which is one, to before `end`.
pub(crate) fn passed(when: &When, first: Timestamp, end: Timestamp) -> Option<Passed> {
    let last = *latest(when, first, before(end), 1).last().filter(|last| **last < end)?;
    if let Plan::Interval(every) = when.plan {
        let steps = last.duration_since(first).unsigned_abs().as_micros() / every.as_micros().max(1);
        let count = u32::try_from(steps + 1).unwrap_or(u32::MAX).min(COUNT_MAX);
        return Some(Passed { first, last, count });
    }
    let mut count = 1;
    let mut instant = first;
    while count < COUNT_MAX && instant < last {
        instant = when.after(instant).unwrap_or(last);
        count += 1;
    }
    Some(Passed { first, last, count })
}

/// The last `n` instants from `first`, which is one, up to `now`, in their order. It looks at ever longer spans that end
/// at `now`, so that weeks of seconds cost no more than minutes.
fn latest(when: &When, first: Timestamp, now: Timestamp, n: usize) -> Vec<Timestamp> {
    let mut span = Duration::from_mins(1);
    loop {
        let from = now.checked_sub(span).unwrap_or(Timestamp::MIN);
        let mut instants = Vec::new();
        let mut next = if from <= first { Some(first) } else { when.after(from) };
        while let Some(instant) = next.filter(|instant| *instant <= now || *instant == first) {
            instants.push(instant);
            next = when.after(instant);
        }
        if instants.len() >= n || from <= first {
            return instants.split_off(instants.len().saturating_sub(n));
        }
        span = span.saturating_mul(8);
    }
}
