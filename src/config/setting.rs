//! How a value of each type is written. File, environment and command line all arrive as text, so that `4`, `"4"` and
//! `PERMITQ_CONSUMER__SLOTS=4` mean the same.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Method;

use super::{DatabaseUrl, Endpoint, HumanDuration, LogFormat, Role};
use crate::model::OnAbandon;

/// A type that a key of the configuration may have.
pub(super) trait Setting: Sized {
    /// Reads the text; a refusal says what is wrong with it, without a remedy.
    fn parse(text: &str) -> Result<Self, String>;
    /// The text, as it may be shown.
    fn show(&self) -> String;
}

impl Setting for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse::<HumanDuration>().map(Self::from).map_err(|error| error.to_string())
    }

    fn show(&self) -> String {
        HumanDuration(*self).to_string()
    }
}

/// An age at which something goes, or `never`.
pub(super) struct Age(pub(super) Option<Duration>);

impl Setting for Age {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "never" { Ok(Self(None)) } else { Setting::parse(text).map(Some).map(Self) }
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| "never".to_owned(), |age| age.show())
    }
}

/// Types whose own reading and printing will do; the words replace the parser's.
fn plain<T: FromStr>(text: &str, wanted: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no {wanted}"))
}

impl Setting for usize {
    fn parse(text: &str) -> Result<Self, String> {
        plain(text, "whole number")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for u32 {
    fn parse(text: &str) -> Result<Self, String> {
        plain(text, "whole number")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for u16 {
    fn parse(text: &str) -> Result<Self, String> {
        plain(text, "HTTP status")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for bool {
    fn parse(text: &str) -> Result<Self, String> {
        plain(text, "true or false")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        plain(text, "address with a port; a host name will not do")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Setting for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Setting for DatabaseUrl {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for Endpoint {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for OnAbandon {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::ALL, Self::as_str)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for Method {
    fn parse(text: &str) -> Result<Self, String> {
        let known = ["GET", "POST", "PUT", "PATCH", "DELETE"];
        let name = word(text, known, |name| name)?;
        plain(name, "HTTP method")
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for Role {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::ALL, Self::as_str)
    }

    fn show(&self) -> String {
        self.as_str().to_owned()
    }
}

impl Setting for LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        word(text, Self::ALL, Self::as_str)
    }

    fn show(&self) -> String {
        self.as_str().to_owned()
    }
}

/// One of a few words.
fn word<T: Copy, const N: usize>(
    text: &str,
    all: [T; N],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    all.into_iter()
        .find(|&one| name(one) == text)
        .ok_or_else(|| format!("{text:?} is none of {}", all.map(&name).join(", ")))
}
