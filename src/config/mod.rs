//! The configuration: defaults < `permitq.toml` < environment < command line.
//!
//! [`Config::load`] is called once by every command of the binary, before anything else. It either returns a
//! configuration in which every value is read, resolved and checked, or [`Problems`]: everything that is wrong, at
//! once, each with its place and a value that would do. Nothing here opens a connection, and no secret is ever part of
//! a message.
//!
//! | later beats earlier | written as |
//! |---|---|
//! | defaults | [`Config::default`] |
//! | file | `[lease] duration = "2m"` in `permitq.toml`, `--config FILE` or `PERMITQ_CONFIG` |
//! | environment | `PERMITQ_LEASE__DURATION=2m`: section and key joined by two underscores, lists with commas |
//! | command line | `--slots 8` |
//!
//! For the database alone there are two short names more, as hosting platforms set them: `DATABASE_URL` is beaten by
//! `PERMITQ_DATABASE_URL`, and that by `PERMITQ_DATABASE__URL`; all three beat the file.
//!
//! `load` gathers the layers, `read` takes every key out of them with its type (what is left over is unknown),
//! `validate` looks at the values together.

mod duration;
mod load;
mod problem;
mod read;
mod secret;
mod section;
mod setting;
mod url;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;

use crate::model::{Limits, Retention, Retry};

pub use duration::{DURATION_MAX, HumanDuration, NoDuration};
pub use load::{Sources, process_env};
pub use problem::{Problem, Problems};
pub use secret::{MASK, Secret};
pub use url::{DatabaseUrl, Endpoint};

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `[database]`
    pub database: Database,
    /// `[consumer]`
    pub consumer: Consumer,
    /// `[lease]`
    pub lease: Lease,
    /// `[downstream.NAME]`; `default` serves every kind that has none of its own. May be empty: most commands call
    /// nobody. See [`Config::require_downstream`].
    pub downstream: BTreeMap<String, Downstream>,
    /// `[retry]`; also part of every downstream's [`Limits`].
    pub retry: Retry,
    /// `[shutdown]`
    pub shutdown: Shutdown,
    /// `[retention]`
    pub retention: Retention,
    /// `[admin]`
    pub admin: Admin,
    /// `[log]`
    pub log: Log,
    effective: Vec<Effective>,
}

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// Tried in order: the first writable one. Never empty once loaded.
    pub url: Vec<DatabaseUrl>,
    /// No operation on the database takes longer.
    pub statement_timeout: Duration,
    /// How far the clocks of its hosts may differ across a failover; part of every downstream's [`Limits`].
    pub clock_slack: Duration,
}

/// One process of the fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumer {
    /// Calls at once in this process; 1 to 10,000.
    pub slots: usize,
    /// How often to look while tasks wait.
    pub poll: Duration,
    /// What people see; made from host and process where `None`.
    pub name: Option<String>,
    /// How long a task waits, once due, until its priority rises by one, and again; never where `None`.
    pub ageing: Option<Duration>,
    /// What this process does. Never empty once loaded.
    pub roles: Vec<Role>,
}

/// What a process of the fleet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Claims tasks and calls downstreams.
    Consume,
    /// Fires schedules.
    Schedule,
    /// Takes over what dead consumers left.
    Reclaim,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Consume, Self::Schedule, Self::Reclaim];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consume => "consume",
            Self::Schedule => "schedule",
            Self::Reclaim => "reclaim",
        }
    }
}

/// How long silence is taken for life.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// At least four beats, and at least `database.statement_timeout`.
    pub duration: Duration,
    /// Between two beats.
    pub heartbeat: Duration,
    /// Between two looks for the abandoned.
    pub reclaim: Duration,
}

/// A downstream and the policies of its calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Downstream {
    /// Where the payload goes.
    pub url: Endpoint,
    /// Where to ask how a call stands that was given up; `{key}` is its `Idempotency-Key`. Nobody is asked where `None`.
    pub probe: Option<Endpoint>,
    /// Whose permits the calls need.
    pub semaphore: String,
    /// GET, POST, PUT, PATCH or DELETE.
    pub method: Method,
    /// Between two bytes of the answer, and until its first; follows `call_timeout` unless set.
    pub read_timeout: Duration,
    /// Answers after which the call may still run; ascending.
    pub unclear_statuses: Vec<u16>,
    /// Answers that mean that the downstream as a whole is down; ascending.
    pub down_statuses: Vec<u16>,
    /// Answers after which another attempt may do better, besides 408, 425, 429 and 5xx; ascending.
    pub retry_statuses: Vec<u16>,
    /// Answers after which no attempt will; ascending.
    pub fail_statuses: Vec<u16>,
    /// Instead of `retry.max_attempts`.
    pub max_attempts: Option<u32>,
    /// Instead of `retry.backoff`.
    pub backoff: Option<Duration>,
    /// Instead of `retry.backoff_cap`.
    pub backoff_cap: Option<Duration>,
    /// Secrets are resolved and marked sensitive, so that they print as `Sensitive`.
    pub headers: HeaderMap,
    /// The CA that alone is trusted, as a PEM file; the system's where `None`.
    pub ca_file: Option<PathBuf>,
    /// Every other limit and policy, `[retry]` and what stands instead of it included.
    pub limits: Limits,
}

/// How to leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Shutdown {
    /// How long running calls may go on after a signal.
    pub grace: Duration,
}

/// The admin server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admin {
    /// Off where `None`.
    pub listen: Option<SocketAddr>,
}

/// What the process says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// For people or for machines.
    pub format: LogFormat,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Human, Self::Json];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

/// A value that is in force, and who said so.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Effective {
    /// Such as `lease.duration`.
    pub key: String,
    /// As it would be written, secrets masked; empty where nothing is set.
    pub value: String,
    /// The file, the environment variable, the command line, or `default`.
    pub origin: String,
}

impl Config {
    /// How long a permit must be held that nothing explains: as long as the longest of any downstream, or the default's.
    pub fn longest_hold(&self) -> Duration {
        let holds = self.downstream.values().map(|downstream| downstream.limits.hold());
        holds.max().unwrap_or_else(|| Limits::default().hold())
    }

    /// Reads and checks the configuration.
    ///
    /// ```
    /// use permitq::config::{Config, Sources};
    /// let env = [("PERMITQ_LEASE__DURATION".to_owned(), "5M".to_owned())].into();
    /// let problems = Config::load(&Sources { env, ..Sources::default() }).unwrap_err();
    /// assert!(problems.to_string().contains("5M means 5 months; write 5m for minutes"));
    /// ```
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        let layers = load::layers(sources)?;
        let (config, mut problems) = read::read(layers, &sources.env, sources.calls);
        // A value that could not be read stands at its default here; nothing is concluded from it.
        let unread = problems.iter().filter_map(|problem| problem.key.clone()).collect();
        problems.extend(validate::faults(&config, &unread));
        Problems::none_in(problems)?;
        Ok(config)
    }

    /// Checks the values together; [`Config::load`] has done so. For configurations that are made in code.
    pub fn validate(&self) -> Result<(), Problems> {
        Problems::none_in(validate::faults(self, &std::collections::BTreeSet::new()))
    }

    /// The downstreams, for a command that calls them.
    pub fn require_downstream(&self) -> Result<&BTreeMap<String, Downstream>, Problem> {
        if self.downstream.is_empty() {
            return Err(Problem {
                origin: "configuration".to_owned(),
                key: Some("downstream".to_owned()),
                what: "no downstream is configured, so there is nobody to call".to_owned(),
                remedy: "add [downstream.default] with url = \"http://127.0.0.1:9000/call\" to permitq.toml, or set \
                         PERMITQ_DOWNSTREAM__DEFAULT__URL"
                    .to_owned(),
            });
        }
        Ok(&self.downstream)
    }

    /// Every value in force with its origin, in the order of the documentation. Empty for a configuration that was not
    /// loaded.
    pub fn explain(&self) -> Vec<Effective> {
        self.effective.clone()
    }
}

impl Downstream {
    /// A downstream with every policy at its default.
    pub fn new(url: Endpoint) -> Self {
        let limits = Limits::default();
        Self {
            url,
            probe: None,
            semaphore: "default".to_owned(),
            method: Method::POST,
            read_timeout: limits.call_timeout,
            unclear_statuses: vec![202, 408, 502, 504, 520, 521, 522, 523, 524],
            down_statuses: vec![503],
            retry_statuses: Vec::new(),
            fail_statuses: Vec::new(),
            max_attempts: None,
            backoff: None,
            backoff_cap: None,
            headers: HeaderMap::new(),
            ca_file: None,
            limits,
        }
    }
}

impl Downstream {
    /// What nobody but the downstream may learn: secret headers and parameters.
    pub fn secrets(&self) -> Vec<Secret> {
        let headers = self.headers.values().filter(|value| value.is_sensitive());
        let headers = headers.filter_map(|value| value.to_str().ok()).flat_map(|value| {
            // A downstream that complains of a token leaves its scheme out.
            let token = value.split_once(' ').map(|(_scheme, token)| token.trim());
            [Some(value), token].into_iter().flatten().map(str::to_owned)
        });
        headers.chain(self.url.secrets()).map(Secret::new).collect()
    }
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: vec![DatabaseUrl::local()],
            statement_timeout: Duration::from_secs(10),
            clock_slack: Duration::from_secs(5),
        }
    }
}

impl Default for Consumer {
    fn default() -> Self {
        Self { slots: 4, poll: Duration::from_secs(1), name: None, ageing: None, roles: Role::ALL.to_vec() }
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self {
            duration: Duration::from_mins(2),
            heartbeat: Duration::from_secs(15),
            reclaim: Duration::from_secs(15),
        }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { grace: Duration::from_mins(10) }
    }
}
