//! Looks at values that were read: ranges, and what must not go together. Every refusal gives its reason and a value
//! that would do.

use std::collections::BTreeSet;
use std::time::Duration;

use super::section::DEFAULT;
use super::{Config, Downstream, HumanDuration, Problem};
use crate::model::{KIND_MAX, Retry};

/// The databases keep instants in finer steps, but nothing here is meant to happen more often than this.
const SHORTEST: Duration = Duration::from_millis(1);
const CALL_MAX: Duration = Duration::from_hours(7 * 24);
const BEATS: u32 = 4;

/// What is wrong with the values, seen together. Nothing is concluded from a key in `unread`.
pub(super) fn faults(config: &Config, unread: &BTreeSet<String>) -> Vec<Problem> {
    let mut check = Check { config, unread, found: Vec::new() };
    check.consumer();
    check.lease();
    for (name, downstream) in &config.downstream {
        check.downstream(name, downstream);
    }
    check.retry();
    check.retention();
    check.found
}

struct Check<'a> {
    config: &'a Config,
    unread: &'a BTreeSet<String>,
    found: Vec<Problem>,
}

impl Check<'_> {
    /// Notes a problem between these keys. The first that somebody set is the one to change.
    fn fault(&mut self, keys: &[&str], what: impl Into<String>, remedy: impl Into<String>) {
        if keys.iter().any(|&key| self.unread.contains(key)) {
            return;
        }
        let origin = |key: &str| {
            let effective = self.config.effective.iter().find(|effective| effective.key == key);
            effective.map_or(DEFAULT, |effective| &effective.origin)
        };
        let set = keys.iter().find(|&&key| origin(key) != DEFAULT).or(keys.first());
        if let Some(&key) = set {
            let origin = origin(key).to_owned();
            self.found.push(Problem {
                origin,
                key: Some(key.to_owned()),
                what: what.into(),
                remedy: remedy.into(),
            });
        }
    }

    fn positive(&mut self, key: &str, duration: Duration, would_do: &str) {
        if duration < SHORTEST {
            self.fault(
                &[key],
                format!("{} is too short; at least 1ms", human(duration)),
                format!("{would_do} would do"),
            );
        }
    }

    fn name(&mut self, key: &str, name: &str, would_do: &str) {
        if name.is_empty() || name.chars().count() > KIND_MAX || name.chars().any(char::is_control) {
            let what = format!("must have 1 to {KIND_MAX} characters, none of them control characters");
            self.fault(&[key], what, format!("{would_do} would do"));
        }
    }

    fn consumer(&mut self) {
        let config = self.config;
        if config.database.url.is_empty() {
            self.fault(&["database.url"], "no database is named", "sqlite://permitq.db would do");
        }
        let consumer = &config.consumer;
        if !(1..=10_000).contains(&consumer.slots) {
            self.fault(
                &["consumer.slots"],
                format!("{} is not from 1 to 10000", consumer.slots),
                "4 would do; the semaphore caps the calls of the whole fleet",
            );
        }
        self.positive("consumer.poll", consumer.poll, "1s");
        if let Some(ageing) = consumer.ageing {
            self.positive("consumer.ageing", ageing, "10m");
        }
        if let Some(name) = &consumer.name {
            self.name("consumer.name", name, "worker-1");
        }
        if consumer.roles.is_empty() {
            self.fault(
                &["consumer.roles"],
                "names no role, so the process would idle",
                "consume,reclaim would do",
            );
        }
    }

    fn lease(&mut self) {
        let lease = &self.config.lease;
        let statement_timeout = self.config.database.statement_timeout;
        self.positive("database.statement_timeout", statement_timeout, "10s");
        self.positive("lease.heartbeat", lease.heartbeat, "15s");
        self.positive("lease.reclaim", lease.reclaim, "15s");
        let floor = (lease.heartbeat * BEATS).max(statement_timeout);
        let remedy = format!("lease.duration = {:?} would do", human(floor));
        if lease.duration < lease.heartbeat * BEATS {
            self.fault(
                &["lease.duration", "lease.heartbeat"],
                format!(
                    "a lease of {} is under four beats of {}: a few late beats would lose it",
                    human(lease.duration),
                    human(lease.heartbeat)
                ),
                remedy,
            );
        } else if lease.duration < statement_timeout {
            self.fault(
                &["lease.duration", "database.statement_timeout"],
                format!(
                    "a lease of {} is shorter than the statement timeout of {}: one slow statement would lose it",
                    human(lease.duration),
                    human(statement_timeout)
                ),
                remedy,
            );
        }
    }

    fn downstream(&mut self, name: &str, downstream: &Downstream) {
        let key = |key: &str| format!("downstream.{name}.{key}");
        let limits = &downstream.limits;
        self.name(&key("semaphore"), &downstream.semaphore, "default");
        self.positive(&key("connect_timeout"), limits.connect_timeout, "5s");
        self.positive(&key("tcp_user_timeout"), limits.tcp_user_timeout, "60s");
        self.positive(&key("start_window"), limits.start_window, "10s");
        self.positive(&key("call_timeout"), limits.call_timeout, "8m");
        // Where it follows the call timeout, it has no problem of its own.
        if downstream.read_timeout != limits.call_timeout {
            self.positive(&key("read_timeout"), downstream.read_timeout, "8m");
        }
        if limits.call_timeout > CALL_MAX {
            self.fault(
                &[&key("call_timeout")],
                format!(
                    "{} is above 7 days: a call that was given up holds its permit until it must be over",
                    human(limits.call_timeout)
                ),
                "8m would do",
            );
        }
        if downstream.read_timeout > limits.call_timeout {
            self.fault(
                &[&key("read_timeout"), &key("call_timeout")],
                format!(
                    "read timeout above call timeout: the call ends after {}, before {} of silence could",
                    human(limits.call_timeout),
                    human(downstream.read_timeout)
                ),
                format!("{} = {:?} would do", key("read_timeout"), human(limits.call_timeout)),
            );
        }
        if downstream.ca_file.is_some() && downstream.url.expose().scheme() == "http" {
            self.fault(
                &[&key("ca_file"), &key("url")],
                "a CA is named, but the URL is http://, so nothing is encrypted or checked",
                "url = \"https://…\" would do",
            );
        }
        for (name, statuses, would_do) in [
            ("unclear_statuses", &downstream.unclear_statuses, "[202, 408, 502, 504] would do"),
            ("down_statuses", &downstream.down_statuses, "[503] would do"),
            ("retry_statuses", &downstream.retry_statuses, "[409] would do"),
            ("fail_statuses", &downstream.fail_statuses, "[501] would do"),
        ] {
            for status in statuses.iter().filter(|status| !(100..=599).contains(*status)) {
                let what = format!("{status} is no HTTP status; they are 100 to 599");
                self.fault(&[&key(name)], what, would_do);
            }
        }
        let keys = [key("max_attempts"), key("backoff"), key("backoff_cap")];
        let set = [
            downstream.max_attempts.is_some(),
            downstream.backoff.is_some(),
            downstream.backoff_cap.is_some(),
        ];
        if set.contains(&true) {
            self.retrying(&limits.retry, keys.each_ref().map(String::as_str));
        }
    }

    fn retention(&mut self) {
        if self.config.retention.per_job == 0 {
            self.fault(&["retention.per_job"], "0 keeps not even the newest run of a job", "10000 would do");
        }
    }

    fn retry(&mut self) {
        self.retrying(&self.config.retry, ["retry.max_attempts", "retry.backoff", "retry.backoff_cap"]);
    }

    fn retrying(&mut self, retry: &Retry, [max_attempts, backoff, backoff_cap]: [&str; 3]) {
        if !(1..=1000).contains(&retry.max_attempts) {
            self.fault(
                &[max_attempts],
                format!("{} is not from 1 to 1000; the first attempt counts", retry.max_attempts),
                "3 would do",
            );
        }
        if retry.backoff > retry.backoff_cap {
            self.fault(
                &[backoff, backoff_cap],
                format!(
                    "a backoff of {} is above its cap of {}, so it would never grow",
                    human(retry.backoff),
                    human(retry.backoff_cap)
                ),
                format!("{backoff_cap} = {:?} would do", human(retry.backoff)),
            );
        }
    }
}

fn human(duration: Duration) -> String {
    HumanDuration(duration).to_string()
}
