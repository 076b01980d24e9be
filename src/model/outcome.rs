//! How an attempt ended: what it means for the task ([`Verdict`]), and whether the downstream is known to be done
//! with the call ([`End`]). The two are independent: a `202 Accepted` succeeds and still cools.

use std::fmt;
use std::time::Duration;

/// What an attempt's end means for its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done; the text is kept as the task's result.
    Succeeded { result: Option<String> },
    /// Worth another attempt, not before `after` where the downstream named a time.
    Retry { error: String, after: Option<Duration> },
    /// No attempt will do better.
    Failed { error: String },
    /// The downstream as a whole is down: costs no attempt, and nobody else need try before `after`.
    Down { error: String, after: Option<Duration> },
    /// Never sent, or cut short by our own shutdown: costs no attempt.
    HandedBack { error: String },
    /// Its owner vanished; said by the reclaimer.
    Abandoned { error: String },
    /// A person called it off.
    Cancelled { error: String },
}

/// Whether the downstream is known to be done with the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The downstream's own answer was read to its end, no request can have been sent, or a Rust handler returned.
    /// The permit is free at once.
    Clear,
    /// We gave the call up and hung up, and the downstream stops when its caller does. The permit is free at once, but
    /// the work may have been half done: `on_abandon` decides, as after an unclear end.
    Stopped,
    /// The call may still run downstream. The permit cools until the call must be over.
    Unclear(Why),
}

/// Why a permit cools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The owner's lease ran out.
    Abandoned,
    /// The owner gave the call up at its timeout.
    Timeout,
    /// The connection broke after the request may have been sent.
    Connection,
    /// The answer means "still working", or came from a gateway in front of a downstream that may be.
    Status,
    /// A person cancelled the running task.
    Cancelled,
    /// The owner shut down before the call ended.
    Shutdown,
    /// The handler panicked or said so itself.
    Handler,
    /// The auditor found a permit that nothing explains.
    Drift,
}

impl Why {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::Abandoned,
        Self::Timeout,
        Self::Connection,
        Self::Status,
        Self::Cancelled,
        Self::Shutdown,
        Self::Handler,
        Self::Drift,
    ];

    /// The word in `permitq_cooling.why`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Status => "status",
            Self::Cancelled => "cancelled",
            Self::Shutdown => "shutdown",
            Self::Handler => "handler",
            Self::Drift => "drift",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How one attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it means for the task.
    pub verdict: Verdict,
    /// What it means for the permit.
    pub end: End,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
}

impl Outcome {
    /// A clear success.
    pub fn succeeded(result: impl Into<Option<String>>) -> Self {
        Self::clear(Verdict::Succeeded { result: result.into() })
    }

    /// A clear failure that no retry will mend.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::clear(Verdict::Failed { error: error.into() })
    }

    /// A clear failure that is worth another attempt.
    pub fn retry(error: impl Into<String>, after: Option<Duration>) -> Self {
        Self::clear(Verdict::Retry { error: error.into(), after })
    }

    /// The downstream refused to be called at all, whatever the task: costs no attempt, and the fleet's claims on it pause
    /// until one call finds it up again.
    pub fn down(error: impl Into<String>, after: Option<Duration>) -> Self {
        Self::clear(Verdict::Down { error: error.into(), after })
    }

    /// No request was sent: costs neither an attempt nor a cooling.
    pub fn not_started(error: impl Into<String>) -> Self {
        Self::clear(Verdict::HandedBack { error: error.into() })
    }

    /// A failure after which the call may still run downstream.
    pub fn unclear(why: Why, error: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Retry { error: error.into(), after: None },
            end: End::Unclear(why),
            status: None,
        }
    }

    /// With the HTTP status that led to it.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    fn clear(verdict: Verdict) -> Self {
        Self { verdict, end: End::Clear, status: None }
    }
}
