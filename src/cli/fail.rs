//! Why a command did not do what it was asked, and the exit code that says so.

use std::io;
use std::process::ExitCode;

use crate::store;

/// The end of a command that was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// Wrong usage or configuration: exit code 2.
    Usage(String),
    /// It was asked rightly and could not be done: exit code 1.
    Failed(String),
    /// It was done, and what was found is not well; the output says so already: exit code 1.
    NotOk,
    /// Whoever read our output has read enough (`permitq tasks | head`): no failure at all.
    Unread,
}

impl Failure {
    /// What to tell the person.
    pub(super) fn words(&self) -> Option<&str> {
        match self {
            Self::Usage(words) | Self::Failed(words) => Some(words),
            Self::NotOk | Self::Unread => None,
        }
    }

    /// The exit code.
    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) | Self::NotOk => ExitCode::FAILURE,
            Self::Unread => ExitCode::SUCCESS,
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Url(_)
            | store::Error::Unusable(_)
            | store::Error::Hosts { .. }
            | store::Error::NotBuilt(_) => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Only output fails with a bare I/O error; whoever reads a file says which one.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::Failed(format!("cannot write to standard output: {error}"))
    }
}
