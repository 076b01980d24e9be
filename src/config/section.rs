//! Takes one table of the merged configuration apart, key by key.
//!
//! Deserialising a whole struct would stop at its first problem. Here every key is read on its own, a problem is noted
//! and the default stands in, and what nobody asked for is unknown. So one run lists them all.

use std::collections::BTreeMap;

use ::config::{Map, Value, ValueKind};

use super::secret::{is_reference, resolve};
use super::setting::Setting;
use super::{DatabaseUrl, Effective, Problem};

/// The origin of what nobody set.
pub(super) const DEFAULT: &str = "default";

/// What is found on the way. Written by sections, read when the last one has ended.
pub(super) struct Findings<'a> {
    /// Downstreams are called.
    pub(super) calls: bool,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) problems: Vec<Problem>,
    pub(super) effective: Vec<Effective>,
}

impl Findings<'_> {
    pub(super) fn problem(&mut self, value: &Value, key: &str, what: String, remedy: String) {
        let origin = origin(value).to_owned();
        self.problems.push(Problem { origin, key: Some(key.to_owned()), what, remedy });
    }

    pub(super) fn effective(&mut self, key: String, value: String, origin: &str) {
        self.effective.push(Effective { key, value, origin: origin.to_owned() });
    }
}

/// Where a value was written; a table has no place of its own, so the first of its values speaks for it.
pub(super) fn origin(value: &Value) -> &str {
    match (value.origin(), &value.kind) {
        (Some(origin), _) => origin,
        (None, ValueKind::Table(table)) => {
            table.iter().min_by_key(|(key, _)| *key).map_or("configuration", |(_, value)| origin(value))
        }
        (None, _) => DEFAULT,
    }
}

/// One table. [`Section::end`] must be called, or unknown keys go unseen.
#[must_use]
pub(super) struct Section {
    path: String,
    table: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Section {
    /// The root of the configuration.
    pub(super) fn root(table: Map<String, Value>) -> Self {
        Self { path: String::new(), table, known: Vec::new() }
    }

    /// The full path of a key of this table.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A table within this one; empty where it is absent.
    pub(super) fn section(&mut self, found: &mut Findings, name: &'static str) -> Self {
        self.known.push(name);
        self.table.remove(name).map_or_else(
            || Self { path: self.key(name), table: Map::new(), known: Vec::new() },
            |value| self.within(found, name, value),
        )
    }

    /// The table that `value` of this table should be.
    pub(super) fn within(&self, found: &mut Findings, name: &str, value: Value) -> Self {
        let path = self.key(name);
        let table = if let ValueKind::Table(table) = value.kind {
            table
        } else {
            found.problem(&value, &path, "holds a value, but is a table of keys".into(), {
                format!("[{path}] in the file, or {} in the environment", variable(&format!("{path}.KEY")))
            });
            Map::new()
        };
        Self { path, table, known: Vec::new() }
    }

    /// Every value in this table, by name.
    pub(super) fn entries(&mut self) -> BTreeMap<String, Value> {
        std::mem::take(&mut self.table).into_iter().collect()
    }

    /// The value of a key, or the default, which also is the value that would do.
    pub(super) fn value<T: Setting>(&mut self, found: &mut Findings, key: &'static str, default: T) -> T {
        let would_do = default.show();
        self.value_or(found, key, default, &format!("{would_do} would do"))
    }

    /// The value of a key, or the default, with a remedy of its own.
    pub(super) fn value_or<T: Setting>(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        default: T,
        remedy: &str,
    ) -> T {
        let read = self.read(found, key, remedy, |text| T::parse(text));
        let (value, origin) = read.unwrap_or_else(|| (default, DEFAULT.to_owned()));
        found.effective(self.key(key), value.show(), &origin);
        value
    }

    /// The value of a key that need not be there.
    pub(super) fn optional<T: Setting>(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        would_do: &str,
    ) -> Option<T> {
        let read = self.read(found, key, &format!("{would_do} would do"), |text| T::parse(text));
        let (value, origin) =
            read.map_or((None, DEFAULT.to_owned()), |(value, origin)| (Some(value), origin));
        found.effective(self.key(key), value.as_ref().map_or_else(String::new, T::show), &origin);
        value
    }

    /// The value of a key that must be there; `None` once the problem is noted.
    pub(super) fn required<T: Setting>(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        would_do: &str,
    ) -> Option<T> {
        let path = self.key(key);
        if !self.table.contains_key(key) {
            self.known.push(key);
            let place = Value::new(None, self.table.clone());
            found.problem(&place, &path, "is missing".into(), format!("{path} = {would_do:?} would do"));
            return None;
        }
        let (value, origin) =
            self.read(found, key, &format!("{would_do} would do"), |text| T::parse(text))?;
        found.effective(path, value.show(), &origin);
        Some(value)
    }

    /// The values of a key that holds a list; one text may hold several, with commas.
    pub(super) fn list<T: Setting>(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        default: Vec<T>,
    ) -> Vec<T> {
        let split = |text: &str| text.split(',').map(str::to_owned).collect();
        self.list_of(found, key, default, split, T::parse)
    }

    /// Database URLs; each may be `env:NAME` or `file:PATH`. A comma parts two of them only where a new URL begins
    /// after it: a password may hold one.
    pub(super) fn databases(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        default: Vec<DatabaseUrl>,
    ) -> Vec<DatabaseUrl> {
        let env = found.env;
        self.list_of(found, key, default, split_urls, |text| {
            let secret = resolve(text, env).map_err(|(what, _)| what)?;
            secret.expose().trim().parse()
        })
    }

    fn list_of<T: Setting>(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        default: Vec<T>,
        split: impl Fn(&str) -> Vec<String>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let path = self.key(key);
        let show = |values: &[T]| values.iter().map(T::show).collect::<Vec<_>>().join(",");
        self.known.push(key);
        let Some(value) = self.table.remove(key) else {
            found.effective(path, show(&default), DEFAULT);
            return default;
        };
        let place = origin(&value).to_owned();
        let texts: Vec<Result<String, String>> = match &value.kind {
            ValueKind::Array(values) => values.iter().map(text).collect(),
            _ => text(&value)
                .map_or_else(|what| vec![Err(what)], |text| split(&text).into_iter().map(Ok).collect()),
        };
        let mut read = Vec::new();
        for text in texts {
            let one = text.and_then(|text| match text.trim() {
                "" => Ok(None),
                text => parse(text).map(Some),
            });
            match one {
                Ok(one) => read.extend(one),
                Err(what) => found.problem(&value, &path, what, format!("{} would do", show(&default))),
            }
        }
        found.effective(path, show(&read), &place);
        read
    }

    fn read<T>(
        &mut self,
        found: &mut Findings,
        key: &'static str,
        remedy: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<(T, String)> {
        self.known.push(key);
        let value = self.table.remove(key)?;
        match text(&value).and_then(|text| parse(text.trim())) {
            Ok(read) => Some((read, origin(&value).to_owned())),
            Err(what) => {
                found.problem(&value, &self.key(key), what, remedy.to_owned());
                None
            }
        }
    }

    /// What is left in the table is unknown.
    pub(super) fn end(mut self, found: &mut Findings) {
        for (name, value) in self.entries() {
            let place = origin(&value);
            let known = self.known.join(", ");
            let remedy = if self.path.is_empty() && place.starts_with("PERMITQ_") && !place.contains("__") {
                "section and key are joined by two underscores, as in PERMITQ_LEASE__DURATION".to_owned()
            } else if self.path.is_empty() {
                format!("the sections are {known}")
            } else {
                format!("the keys of {} are {known}", self.path)
            };
            found.problem(&value, &self.key(&name), "unknown key".to_owned(), remedy);
        }
    }
}

/// The environment variable that sets a key.
fn variable(key: &str) -> String {
    format!("PERMITQ_{}", key.replace('.', "__").to_uppercase())
}

/// A single value as it would be written in the environment.
pub(super) fn text(value: &Value) -> Result<String, String> {
    match &value.kind {
        ValueKind::Table(_) => Err("holds a table, but is a single value".to_owned()),
        ValueKind::Array(_) => Err("holds a list, but is a single value".to_owned()),
        ValueKind::Nil => Ok(String::new()),
        single => Ok(single.to_string()),
    }
}

fn split_urls(text: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let begins =
            piece.contains("://") || piece.trim_start().starts_with("sqlite:") || is_reference(piece.trim());
        match urls.last_mut() {
            Some(last) if !begins => last.extend([",", piece]),
            _ => urls.push(piece.to_owned()),
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_password_parts_nothing() {
        let split = |text| split_urls(text).iter().map(|url| url.trim().to_owned()).collect::<Vec<_>>();
        assert_eq!(split("sqlite://a.db"), ["sqlite://a.db"]);
        assert_eq!(
            split("postgres://u:p,w@a/db, postgres://b/db"),
            ["postgres://u:p,w@a/db", "postgres://b/db"]
        );
        assert_eq!(split("env:ONE,file:/two"), ["env:ONE", "file:/two"]);
    }
}
