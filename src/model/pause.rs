//! What is paused: nobody claims its tasks. A person pauses for as long as they like; a downstream that is down is paused by
//! whoever finds it so, until one probe call finds it up again. Running calls are never touched.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::Attempt;

/// Whose tasks are not claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everybody's.
    Fleet,
    /// Those of one kind.
    Kind,
    /// Those of one semaphore.
    Semaphore,
    /// Those that one `[downstream.NAME]` serves.
    Downstream,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Fleet, Self::Kind, Self::Semaphore, Self::Downstream];

    /// The word in `permitq_pause.what`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Kind => "kind",
            Self::Semaphore => "semaphore",
            Self::Downstream => "downstream",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("{word:?} cannot be paused; what can is {known}")
        })
    }
}

/// A pause as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// Whose tasks.
    pub scope: Scope,
    /// Its name; empty for the fleet.
    pub name: String,
    /// Since when.
    pub since: Timestamp,
    /// From then on one probe call may be sent; `None` where only a person ends it.
    pub until: Option<Timestamp>,
    /// How often in a row the downstream was found down.
    pub failures: u32,
    /// The probe: the last one that was sent, and not yet known to have failed.
    pub probe: Option<Attempt>,
    /// Who said so.
    pub who: String,
    /// Why.
    pub why: Option<String>,
}

/// A pause as the unlocked look has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Paused {
    /// Whose tasks.
    #[serde(rename = "what")]
    pub scope: Scope,
    /// Its name; empty for the fleet.
    pub name: String,
    /// Microseconds until a probe may be sent; `None`: none ever.
    wait: Option<i64>,
    /// 1 while a probe is under way.
    probed: i64,
}

impl Paused {
    /// Whether it holds up tasks of this semaphore and kind, which this downstream serves.
    pub fn holds(&self, semaphore: &str, kind: &str, downstream: &str) -> bool {
        match self.scope {
            Scope::Fleet => true,
            Scope::Kind => self.name == kind,
            Scope::Semaphore => self.name == semaphore,
            Scope::Downstream => self.name == downstream,
        }
    }

    /// How long until a probe may be sent; zero: now. `None` where that is not a question of time.
    pub fn probe_in(&self) -> Option<Duration> {
        let wait = self.wait.filter(|_| self.scope == Scope::Downstream && self.probed == 0)?;
        Some(Duration::from_micros(u64::try_from(wait).unwrap_or_default()))
    }
}
