//! Gathers the layers and lays them over each other; every value keeps the name of the place it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use ::config::{
    Config as Layered, ConfigError, Environment, FileFormat, Format, Map, Source, Value, ValueKind,
};

use super::{Problem, Problems};

const COMMAND_LINE: &str = "command line";

/// Everything that a configuration is made from. Prints as the files' names: all else may hold secrets.
#[derive(Clone)]
pub struct Sources {
    /// A file that somebody named, and that must be there; else the environment's `PERMITQ_CONFIG`.
    pub file: Option<PathBuf>,
    /// The file that is taken where nobody named one, if it is there.
    pub default_file: PathBuf,
    /// The environment: `PERMITQ_…`, `DATABASE_URL`, and whatever `env:NAME` refers to. See [`process_env`].
    pub env: BTreeMap<String, String>,
    /// Whether downstreams are called: only then their headers, and the secrets in them, are looked up.
    pub calls: bool,
    /// Keys with their values from the command line, such as `("consumer.slots", "8")`.
    pub flags: Vec<(String, String)>,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            file: None,
            default_file: PathBuf::from("permitq.toml"),
            env: BTreeMap::new(),
            calls: true,
            flags: Vec::new(),
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Sources");
        shown.field("file", &self.file).field("default_file", &self.default_file).finish_non_exhaustive()
    }
}

/// The process's environment, less what is no text.
pub fn process_env() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Values with their origins, ready to be laid over earlier ones.
#[derive(Clone, Debug)]
struct Layer(Map<String, Value>);

impl Layer {
    fn of(key: &str, value: &str, origin: &str) -> Self {
        Self(Map::from([(key.to_owned(), Value::new(Some(&origin.to_owned()), value))]))
    }
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.clone())
    }
}

/// The layers, merged. Only a file that cannot be read is a problem here.
pub(super) fn layers(sources: &Sources) -> Result<Map<String, Value>, Problems> {
    let mut builder = Layered::builder().add_source(file(sources)?);
    for layer in environment(&sources.env) {
        builder = builder.add_source(layer);
    }
    for (key, value) in &sources.flags {
        builder = builder.add_source(Layer::of(key, value, COMMAND_LINE));
    }
    let merged = builder.build().and_then(|layered| layered.collect());
    merged.map_err(|error| {
        let remedy = "check keys and values".to_owned();
        Problem { origin: "configuration".to_owned(), key: None, what: error.to_string(), remedy }.into()
    })
}

fn file(sources: &Sources) -> Result<Layer, Problems> {
    let from_env = sources.env.get("PERMITQ_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let named = sources.file.clone().or(from_env);
    let path = named.as_deref().unwrap_or(&sources.default_file);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Layer(Map::new()));
        }
        Err(error) => {
            let remedy = "name a readable file with --config or PERMITQ_CONFIG, or none".to_owned();
            return Err(whole_file(path, format!("cannot be read: {error}"), remedy));
        }
    };
    let origin = path.display().to_string();
    let mut values = FileFormat::Toml.parse(Some(&origin), &text).map_err(|error| {
        let remedy = "texts and durations stand in quotes, as in duration = \"2m\"".to_owned();
        whole_file(path, without_excerpt(&error.to_string()), remedy)
    })?;
    lower_case_headers(&mut values);
    Ok(Layer(values))
}

fn whole_file(path: &Path, what: String, remedy: String) -> Problems {
    Problem { origin: path.display().to_string(), key: None, what, remedy }.into()
}

/// The parser's message on one line, with line and column, but without the excerpt, which may hold a secret.
fn without_excerpt(message: &str) -> String {
    let excerpt =
        |line: &str| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
    message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !excerpt(line))
        .collect::<Vec<_>>()
        .join(": ")
}

/// Header names have no case, but keys have, and the environment only has lower case: without this, a header could not
/// be replaced from there.
fn lower_case_headers(values: &mut Map<String, Value>) {
    let Some(ValueKind::Table(downstreams)) = values.get_mut("downstream").map(|value| &mut value.kind)
    else {
        return;
    };
    for downstream in downstreams.values_mut() {
        if let ValueKind::Table(keys) = &mut downstream.kind
            && let Some(ValueKind::Table(headers)) = keys.get_mut("headers").map(|value| &mut value.kind)
        {
            for name in headers.keys().cloned().collect::<Vec<_>>() {
                let lower = name.to_ascii_lowercase();
                // A header that is given twice keeps both names, for its problem to be found.
                if !headers.contains_key(&lower)
                    && let Some(value) = headers.remove(&name)
                {
                    headers.insert(lower, value);
                }
            }
        }
    }
}

/// One layer for every variable, so that each value keeps the variable's name; weakest first.
fn environment(env: &BTreeMap<String, String>) -> Vec<Layer> {
    let short = ["DATABASE_URL", "PERMITQ_DATABASE_URL"].into_iter().filter_map(|name| {
        let url = env.get(name).filter(|url| !url.is_empty())?;
        Some(Layer::of("database.url", url, name))
    });
    let long = env.iter().filter(|(name, value)| !is_reserved(name, value)).flat_map(|(name, value)| {
        let values = Environment::with_prefix("PERMITQ")
            // Without it the prefix would end in two underscores as well, and be missed silently.
            .prefix_separator("_")
            .separator("__")
            .ignore_empty(true)
            .source(Some(Map::from([(name.clone(), value.clone())])))
            .collect()
            .unwrap_or_default();
        values.into_iter().map(|(key, value)| Layer::of(&key, &value.to_string(), name)).collect::<Vec<_>>()
    });
    short.chain(long).collect()
}

/// Variables that begin with our prefix and are no keys.
fn is_reserved(name: &str, value: &str) -> bool {
    matches!(name, "PERMITQ_CONFIG" | "PERMITQ_LOG" | "PERMITQ_DATABASE_URL") || is_service_link(name, value)
}

/// Kubernetes tells every pod of every service: beside one called `permitq`, or `permitq-admin`, these variables are in
/// our environment without anybody's doing.
fn is_service_link(name: &str, value: &str) -> bool {
    !name.contains("__")
        && (name.ends_with("_SERVICE_HOST")
            || name.contains("_SERVICE_PORT")
            || (name.contains("_PORT_") && (name.contains("_TCP") || name.contains("_UDP")))
            || (name.ends_with("_PORT") && value.contains("://")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_left_out() {
        let message = "TOML parse error at line 3, column 9\n  |\n3 | token = hunter2\n  |         ^\nstring values must be quoted\n";
        assert_eq!(
            without_excerpt(message),
            "TOML parse error at line 3, column 9: string values must be quoted"
        );
    }

    #[test]
    fn service_links_are_no_keys() {
        for (name, value) in [
            ("PERMITQ_SERVICE_HOST", "10.0.0.1"),
            ("PERMITQ_SERVICE_PORT_HTTP", "8080"),
            ("PERMITQ_PORT", "tcp://10.0.0.1:8080"),
            ("PERMITQ_ADMIN_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ] {
            assert!(is_reserved(name, value), "{name}");
        }
        assert!(!is_reserved("PERMITQ_ADMIN_PORT", "8080"));
        assert!(!is_reserved("PERMITQ_DOWNSTREAM__A_SERVICE_HOST__URL", "http://h"));
    }
}
