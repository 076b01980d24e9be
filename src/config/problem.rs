//! What is wrong with a configuration: everything at once, each with its place and its remedy.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, the environment variable or the command line; `default` where nobody set it.
    pub origin: String,
    /// The key, such as `lease.duration`; `None` where the whole origin is wrong.
    pub key: Option<String>,
    /// What is wrong, and why that matters. Never a secret.
    pub what: String,
    /// What would do instead.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(key) = &self.key {
            // A quoted TOML key may hold anything, a line break included.
            write!(f, "{}: ", key.escape_debug())?;
        }
        write!(f, "{} ({})", one_line(&self.what), one_line(&self.remedy))
    }
}

/// What was written may be part of what is said of it.
fn one_line(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

impl std::error::Error for Problem {}

/// Everything that is wrong, one problem a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// `Ok` where there is no problem.
    pub(super) fn none_in(found: Vec<Problem>) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self(found)) }
    }

    /// The problems in the order of the configuration.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
