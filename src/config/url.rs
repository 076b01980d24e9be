//! URLs that print without the secrets in them.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use super::secret::is_sensitive;
use crate::store::{check_url, mask};

/// A database URL. It prints with its password masked.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// A file in the working directory: no server needed.
    pub fn local() -> Self {
        Self("sqlite://permitq.db".to_owned())
    }

    /// The URL with its password: for the driver, never for a log.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        check_url(text).map(|()| Self(text.to_owned()))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mask(&self.0))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The URL of a downstream: `http` or `https`, no credentials. It prints with the values of its query masked:
/// which of them are secrets, only the downstream knows.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// The URL with its whole query: for the HTTP client, never for a log.
    pub fn expose(&self) -> &Url {
        &self.0
    }

    /// Values of its query that are secrets by their names, as they are written and as they are meant.
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> {
        let written = self.0.query().into_iter().flat_map(|query| query.split('&'));
        let written =
            written.filter_map(|pair| pair.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned()));
        let meant = self.0.query_pairs().into_owned();
        written.chain(meant).filter(|(name, _)| is_sensitive(name)).map(|(_, value)| value)
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("the URL must begin with http:// or https://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("credentials in the URL would reach logs; put them into headers, as in \
                 headers = { Authorization = \"env:REPORT_TOKEN\" }"
                .to_owned());
        }
        Ok(Self(url))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The parsed URL writes the braces of a probe's `{key}` in their long form.
        f.write_str(&mask(self.0.as_str()).replace("%7Bkey%7D", "{key}"))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_mask() {
        for (url, shown) in [
            ("postgres://u:hunter2@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u:hunter2%2F@h/db", "postgres://u:***@h/db"),
            ("mysql://u@h/db", "mysql://u@h/db"),
            (
                "postgres://h/db?user=u&password=hunter2&sslmode=require",
                "postgres://h/db?user=u&password=***&sslmode=require",
            ),
            ("sqlite://permitq.db", "sqlite://permitq.db"),
            ("sqlite:permitq.db", "sqlite:permitq.db"),
        ] {
            let read: DatabaseUrl = url.parse().unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(format!("{read:?}"), shown);
            assert_eq!(read.expose(), url);
        }
        let endpoint: Endpoint = "https://h/call?api_key=hunter2&n=1".parse().unwrap();
        assert_eq!(format!("{endpoint:?}"), "https://h/call?api_key=***&n=***");
        let probe: Endpoint = "https://h/calls/{key}?api_key=hunter2".parse().unwrap();
        assert_eq!(probe.to_string(), "https://h/calls/{key}?api_key=***");
    }

    #[test]
    fn a_refused_url_is_not_shown() {
        for url in
            ["mongodb://u:hunter2@h/db", "u:hunter2@h", "postgres://u:hunter2#@h/db", "", "postgres:/db"]
        {
            let refusal = url.parse::<DatabaseUrl>().unwrap_err();
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
        for (url, words) in [
            ("http://u:hunter2@h/", "put them into headers"),
            ("ftp://h/hunter2", "http:// or https://"),
            ("/hunter2", "not a URL"),
            ("http://", "not a URL"),
        ] {
            let refusal = url.parse::<Endpoint>().unwrap_err();
            assert!(refusal.contains(words) && !refusal.contains("hunter2"), "{refusal}");
        }
    }
}
