//! How long what is over is kept.

use std::time::Duration;

use super::State;

/// Ages at which finished tasks go, with all that belongs to them; `None`: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// After success.
    pub succeeded: Option<Duration>,
    /// After failure.
    pub failed: Option<Duration>,
    /// After cancellation.
    pub cancelled: Option<Duration>,
    /// Of each job at most so many planned instants and their runs, whatever their age.
    pub per_job: u32,
}

impl Default for Retention {
    fn default() -> Self {
        let month = Some(Duration::from_hours(30 * 24));
        Self {
            succeeded: Some(Duration::from_hours(7 * 24)),
            failed: month,
            cancelled: month,
            per_job: 10_000,
        }
    }
}

impl Retention {
    /// What belongs to no task goes no sooner: an audit of the last weeks has what it needs, and no call is older.
    pub const REST: Duration = Duration::from_hours(30 * 24);

    /// The age at which tasks in this state go.
    pub fn age(&self, state: State) -> Option<Duration> {
        match state {
            State::Succeeded => self.succeeded,
            State::Failed => self.failed,
            State::Cancelled => self.cancelled,
            State::Blocked | State::Scheduled | State::Pending | State::Running => None,
        }
    }

    /// The age at which goes what belongs to no task: that of the tasks that stay the longest, and at least [`Self::REST`].
    pub fn rest(&self) -> Option<Duration> {
        let longest = self.succeeded?.max(self.failed?).max(self.cancelled?);
        Some(longest.max(Self::REST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_final_has_an_age() {
        let retention = Retention::default();
        for state in State::ALL {
            assert_eq!(retention.age(state).is_some(), state.is_final(), "{state}");
        }
    }

    #[test]
    fn what_belongs_to_no_task_outlives_every_task() {
        let day = Duration::from_hours(24);
        let brief = Retention { succeeded: Some(day), failed: Some(day), cancelled: Some(day), per_job: 1 };
        assert_eq!(brief.rest(), Some(Retention::REST));
        assert_eq!(Retention { failed: Some(day * 90), ..brief }.rest(), Some(day * 90));
        assert_eq!(Retention { cancelled: None, ..brief }.rest(), None);
    }
}
