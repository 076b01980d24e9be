//! Reads every key of the merged layers into [`Config`], in the order of the documentation.

use std::collections::BTreeMap;

use ::config::{Map, Value};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::secret::{MASK, is_reference, is_sensitive, resolve};
use super::section::{Findings, Section, origin, text};
use super::setting::Age;
use super::{Admin, Config, Consumer, Database, Downstream, Endpoint, Lease, Log, Problem, Shutdown};
use crate::model::{KIND_MAX, Limits, Retention, Retry};

/// The configuration with every problem of a single value; a default stands in for a value that could not be read.
pub(super) fn read(
    layers: Map<String, Value>,
    env: &BTreeMap<String, String>,
    calls: bool,
) -> (Config, Vec<Problem>) {
    let found = &mut Findings { env, calls, problems: Vec::new(), effective: Vec::new() };
    let mut root = Section::root(layers);
    let mut config = Config {
        database: database(root.section(found, "database"), found),
        consumer: consumer(root.section(found, "consumer"), found),
        lease: lease(root.section(found, "lease"), found),
        downstream: downstreams(root.section(found, "downstream"), found),
        retry: retry(root.section(found, "retry"), found),
        shutdown: shutdown(root.section(found, "shutdown"), found),
        retention: retention(root.section(found, "retention"), found),
        admin: admin(root.section(found, "admin"), found),
        log: log(root.section(found, "log"), found),
        effective: Vec::new(),
    };
    root.end(found);
    for downstream in config.downstream.values_mut() {
        let Retry { max_attempts, backoff, backoff_cap } = config.retry;
        downstream.limits.retry = Retry {
            max_attempts: downstream.max_attempts.unwrap_or(max_attempts),
            backoff: downstream.backoff.unwrap_or(backoff),
            backoff_cap: downstream.backoff_cap.unwrap_or(backoff_cap),
        };
        downstream.limits.clock_slack = config.database.clock_slack;
    }
    config.effective = std::mem::take(&mut found.effective);
    (config, std::mem::take(&mut found.problems))
}

fn database(mut section: Section, found: &mut Findings) -> Database {
    let default = Database::default();
    let read = Database {
        url: section.databases(found, "url", default.url),
        statement_timeout: section.value(found, "statement_timeout", default.statement_timeout),
        clock_slack: section.value(found, "clock_slack", default.clock_slack),
    };
    section.end(found);
    read
}

fn consumer(mut section: Section, found: &mut Findings) -> Consumer {
    let default = Consumer::default();
    let read = Consumer {
        slots: section.value(found, "slots", default.slots),
        poll: section.value(found, "poll", default.poll),
        name: section.optional(found, "name", "worker-1"),
        ageing: section.optional(found, "ageing", "10m"),
        roles: section.list(found, "roles", default.roles),
    };
    section.end(found);
    read
}

fn lease(mut section: Section, found: &mut Findings) -> Lease {
    let default = Lease::default();
    let read = Lease {
        duration: section.value(found, "duration", default.duration),
        heartbeat: section.value(found, "heartbeat", default.heartbeat),
        reclaim: section.value(found, "reclaim", default.reclaim),
    };
    section.end(found);
    read
}

fn downstreams(mut section: Section, found: &mut Findings) -> BTreeMap<String, Downstream> {
    let mut read = BTreeMap::new();
    for (name, value) in section.entries() {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if name.is_empty() || name.len() > KIND_MAX || !name.chars().all(plain) {
            // The environment knows no case, so any other name could not be reached from there.
            let what = format!("the name of a downstream has 1 to {KIND_MAX} of a-z, 0-9, _ and -");
            let remedy = format!("[downstream.{}] would do", tame(&name));
            found.problem(&value, &section.key(&name), what, remedy);
        }
        if let Some(downstream) = downstream(section.within(found, &name, value), found) {
            read.insert(name, downstream);
        }
    }
    read
}

/// A name that would do in this one's place.
fn tame(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    let tamed: String = name.chars().map(plain).take(KIND_MAX).collect();
    if tamed.is_empty() { "default".to_owned() } else { tamed }
}

/// `None` where its URL is missing or wrong. Its other keys are read all the same, for their problems.
fn downstream(mut section: Section, found: &mut Findings) -> Option<Downstream> {
    const BOUND: &str = "every call needs a bound, because a call that was given up holds its permit until it must \
                         be over: 8m would do";
    let url: Option<Endpoint> = section.required(found, "url", "http://127.0.0.1:9000/call");
    let missing = url.is_none();
    // Never called: only lets the rest of the section be read.
    let stand_in = || "http://127.0.0.1".parse().ok();
    let default = Downstream::new(url.or_else(stand_in)?);
    let limits = default.limits;
    let call_timeout = section.value_or(found, "call_timeout", limits.call_timeout, BOUND);
    let mut read = Downstream {
        probe: section.optional(found, "probe", "http://127.0.0.1:9000/calls/{key}"),
        semaphore: section.value(found, "semaphore", default.semaphore),
        method: section.value(found, "method", default.method),
        // Silence is how a long call looks: a shorter default would end calls that the call timeout allows.
        read_timeout: section.value(found, "read_timeout", call_timeout),
        unclear_statuses: section.list(found, "unclear_statuses", default.unclear_statuses),
        down_statuses: section.list(found, "down_statuses", default.down_statuses),
        retry_statuses: section.list(found, "retry_statuses", default.retry_statuses),
        fail_statuses: section.list(found, "fail_statuses", default.fail_statuses),
        max_attempts: section.optional(found, "max_attempts", "3"),
        backoff: section.optional(found, "backoff", "5s"),
        backoff_cap: section.optional(found, "backoff_cap", "10m"),
        limits: Limits {
            call_timeout,
            connect_timeout: section.value(found, "connect_timeout", limits.connect_timeout),
            tcp_user_timeout: section.value(found, "tcp_user_timeout", limits.tcp_user_timeout),
            start_window: section.value(found, "start_window", limits.start_window),
            stops_on_disconnect: section.value(found, "stops_on_disconnect", limits.stops_on_disconnect),
            on_abandon: section.value(found, "on_abandon", limits.on_abandon),
            clock_slack: limits.clock_slack,
            retry: limits.retry,
        },
        ca_file: section.optional(found, "ca_file", "/etc/ssl/our-ca.pem"),
        headers: headers(section.section(found, "headers"), found),
        url: default.url,
    };
    section.end(found);
    for list in [
        &mut read.unclear_statuses,
        &mut read.down_statuses,
        &mut read.retry_statuses,
        &mut read.fail_statuses,
    ] {
        list.sort_unstable();
        list.dedup();
    }
    (!missing).then_some(read)
}

fn headers(mut section: Section, found: &mut Findings) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !found.calls {
        return headers;
    }
    for (name, value) in section.entries() {
        let key = section.key(&name);
        match header(&name, &value, found.env) {
            Ok((header, content, shown)) => {
                if headers.insert(header, content).is_some() {
                    let remedy = "keep one of the two".to_owned();
                    found.problem(&value, &key, "the header is given twice".to_owned(), remedy);
                }
                found.effective(key, shown, origin(&value));
            }
            Err((what, remedy)) => found.problem(&value, &key, what, remedy),
        }
    }
    headers
}

/// Name, value, and what may be shown of it.
fn header(
    name: &str,
    value: &Value,
    env: &BTreeMap<String, String>,
) -> Result<(HeaderName, HeaderValue, String), (String, String)> {
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| ("no name of an HTTP header".to_owned(), "Authorization would do".to_owned()))?;
    let written =
        text(value).map_err(|what| (what, "\"env:NAME\", \"file:PATH\" or a text would do".to_owned()))?;
    let secret = resolve(&written, env)?;
    let mut content = HeaderValue::from_str(secret.expose()).map_err(|_| {
        (
            "the value holds a character that no header may carry, such as a line break".to_owned(),
            "visible ASCII characters and spaces would do".to_owned(),
        )
    })?;
    content.set_sensitive(is_reference(&written) || is_sensitive(name));
    // Which of the other values are secrets, only the downstream knows.
    let shown = if is_reference(&written) { written } else { MASK.to_owned() };
    Ok((header, content, shown))
}

fn retry(mut section: Section, found: &mut Findings) -> Retry {
    let default = Retry::default();
    let read = Retry {
        max_attempts: section.value(found, "max_attempts", default.max_attempts),
        backoff: section.value(found, "backoff", default.backoff),
        backoff_cap: section.value(found, "backoff_cap", default.backoff_cap),
    };
    section.end(found);
    read
}

fn shutdown(mut section: Section, found: &mut Findings) -> Shutdown {
    let read = Shutdown { grace: section.value(found, "grace", Shutdown::default().grace) };
    section.end(found);
    read
}

fn retention(mut section: Section, found: &mut Findings) -> Retention {
    let default = Retention::default();
    let failed = section.value(found, "failed", Age(default.failed)).0;
    let read = Retention {
        succeeded: section.value(found, "succeeded", Age(default.succeeded)).0,
        failed,
        cancelled: section.value(found, "cancelled", Age(failed)).0,
        per_job: section.value(found, "per_job", default.per_job),
    };
    section.end(found);
    read
}

fn admin(mut section: Section, found: &mut Findings) -> Admin {
    let read = Admin { listen: section.optional(found, "listen", "127.0.0.1:8080") };
    section.end(found);
    read
}

fn log(mut section: Section, found: &mut Findings) -> Log {
    let read = Log { format: section.value(found, "format", Log::default().format) };
    section.end(found);
    read
}
