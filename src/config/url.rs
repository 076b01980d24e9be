//! URLs that print without the secrets in them.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use super::secret::{MASK, is_sensitive};

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
        const SCHEMES: [&str; 5] = ["sqlite", "postgres", "postgresql", "mysql", "mariadb"];
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            // `sqlite:file.db` and `sqlite::memory:` are the driver's own short forms.
            "sqlite" => Ok(Self(text.to_owned())),
            _ if SCHEMES.contains(&scheme) => match Url::parse(text) {
                Ok(url) if url.has_host() => Ok(Self(text.to_owned())),
                Ok(_) => Err("the URL names no host".to_owned()),
                Err(error) => {
                    Err(format!("not a URL: {error}; special characters in a password are percent-encoded"))
                }
            },
            // The text itself is not shown: it may hold a password in some unknown form.
            _ => {
                Err("not the URL of a database that is supported: sqlite, postgres, mysql, mariadb"
                    .to_owned())
            }
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The URL of a downstream: `http` or `https`, no credentials. It prints with the secrets of its query masked.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// The URL with its whole query: for the HTTP client, never for a log.
    pub fn expose(&self) -> &Url {
        &self.0
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
        f.write_str(&masked(self.0.as_str()))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The URL without its password and without the values of secret query parameters. It looks at the text, not at the
/// parsed URL, and takes everything up to the last `@` for credentials: rather masked too much than too little where a
/// password holds a character that should have been encoded.
fn masked(url: &str) -> String {
    let (scheme, mut rest) = url.split_once("://").unwrap_or(("", url));
    let mut user = String::new();
    if let Some((credentials, host)) = rest.rsplit_once('@')
        && let Some((name, _)) = credentials.split_once(':')
    {
        user = format!("{name}:{MASK}@");
        rest = host;
    }
    let begin = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let Some((path, query)) = rest.split_once('?') else {
        return format!("{begin}{user}{rest}");
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_sensitive(name) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    });
    format!("{begin}{user}{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked() {
        for (url, shown) in [
            ("postgres://u:hunter2@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u:hunter2%2F@h/db", "postgres://u:***@h/db"),
            ("mysql://u@h/db", "mysql://u@h/db"),
            (
                "mariadb://h/db?user=u&password=hunter2&ssl-mode=required",
                "mariadb://h/db?user=u&password=***&ssl-mode=required",
            ),
            ("sqlite://permitq.db", "sqlite://permitq.db"),
            ("sqlite:permitq.db", "sqlite:permitq.db"),
        ] {
            let read: DatabaseUrl = url.parse().unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(format!("{read:?}"), shown);
            assert_eq!(read.expose(), url);
        }
        assert_eq!(masked("https://h/?token=hunter2&to=a@b"), "https://h/?token=***&to=a@b");
        assert_eq!(masked("postgres://u:hunter2/x?y@h/db"), "postgres://u:***@h/db");
        let endpoint: Endpoint = "https://h/call?api_key=hunter2&n=1".parse().unwrap();
        assert_eq!(format!("{endpoint:?}"), "https://h/call?api_key=***&n=1");
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
