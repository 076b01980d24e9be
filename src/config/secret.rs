//! Values that must not be seen: where they come from, and what stands in their place when something is printed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

use serde::{Serialize, Serializer};

/// What is printed in a secret's place.
pub const MASK: &str = "***";

/// A text that prints as `***`; only [`Secret::expose`] gives it away.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: for the wire, never for a log.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// Whether a header or query parameter of this name is taken for a secret even where its value stands in the open: what
/// the downstream says is searched for it.
pub(super) fn is_sensitive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "cookie", "credential", "key", "pass", "pwd", "secret", "sig", "token"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether the text refers to a secret elsewhere.
pub(super) fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

/// Follows `env:NAME` and `file:PATH`; any other text is the secret itself. A refusal is `(what, remedy)` and shows
/// nothing but the name or the path.
pub(super) fn resolve(text: &str, env: &BTreeMap<String, String>) -> Result<Secret, (String, String)> {
    let found = if let Some(name) = text.strip_prefix("env:") {
        let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !named {
            // Whoever put the secret itself behind `env:` must not read it back in a log.
            return Err((
                "what follows env: is no name of an environment variable".to_owned(),
                "env:REPORT_TOKEN would do".to_owned(),
            ));
        }
        let value = env.get(name).filter(|value| !value.is_empty());
        value.cloned().ok_or_else(|| {
            (
                format!("environment variable {name} is not set or empty"),
                format!("set {name}, or name another variable"),
            )
        })?
    } else if let Some(path) = text.strip_prefix("file:") {
        let remedy = || "name a readable text file that holds nothing but the secret".to_owned();
        let held =
            read(path).map_err(|error| (format!("file {path:?} cannot be read: {error}"), remedy()))?;
        // Editors and `echo` end a file with a line break that is no part of the secret.
        let held = held.trim_end_matches(['\r', '\n']);
        if held.is_empty() {
            return Err((format!("file {path:?} is empty"), remedy()));
        }
        held.to_owned()
    } else {
        text.to_owned()
    };
    Ok(Secret(found))
}

/// No secret is longer, and a device that never ends is none.
const FILE_MAX: u64 = 64 << 10;

fn read(path: &str) -> io::Result<String> {
    let mut held = String::new();
    std::fs::File::open(path)?.take(FILE_MAX + 1).read_to_string(&mut held)?;
    if held.len() as u64 > FILE_MAX {
        return Err(io::Error::other("it holds more than 64 KiB"));
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {secret}"), "*** ***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_reference_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "from file\n").unwrap();
        let env = BTreeMap::from([("TOKEN".to_owned(), "from env".to_owned())]);
        let exposed = |text: &str| resolve(text, &env).map(|secret| secret.expose().to_owned());
        assert_eq!(exposed("env:TOKEN").unwrap(), "from env");
        assert_eq!(exposed(&format!("file:{}", path.display())).unwrap(), "from file");
        assert_eq!(exposed("literal").unwrap(), "literal");
    }

    #[test]
    fn a_dead_reference_names_itself_and_nothing_else() {
        let env = BTreeMap::from([("EMPTY".to_owned(), String::new())]);
        let refusal = |text: &str| resolve(text, &env).unwrap_err().0;
        assert!(refusal("env:MISSING").contains("variable MISSING is not set"));
        assert!(refusal("env:EMPTY").contains("EMPTY"));
        assert!(refusal("file:/no/such/file").contains("/no/such/file"));
        assert!(!refusal("env:Bearer hunter2").contains("hunter2"));
        assert!(refusal("file:/dev/zero").contains("more than 64 KiB"));
    }
}
