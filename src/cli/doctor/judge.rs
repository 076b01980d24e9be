//! What was found, and what it means: values in, a verdict out. Nothing here asks anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{Check, span, when};
use crate::config::{Config, HumanDuration};
use crate::model::Semaphore;
use crate::store::{ConsumerRow, Dialect, Error, Facts, Server};

/// Beyond this, clocks differ enough for people to be misled.
const CLOCK: Duration = Duration::from_secs(2);

/// MariaDB's default, in KiB: more than the longest payload, escaped.
const PACKET: i64 = 16 << 10;

/// What is in force on a server.
pub(super) struct Sight {
    pub(super) dialect: Dialect,
    pub(super) settings: BTreeMap<String, String>,
}

/// That it could be read is the check; what it says is not all wise.
pub(super) fn configuration(config: &Config) -> Check {
    const NAME: &str = "configuration";
    let mut unwise = Vec::new();
    for (name, downstream) in &config.downstream {
        let call = downstream.limits.call_timeout;
        if config.shutdown.grace < call {
            unwise.push(format!(
                "shutdown.grace is {}, so a stop gives up calls of {name}, which may take {}, and their permits cool",
                HumanDuration(config.shutdown.grace),
                HumanDuration(call)
            ));
        }
        if downstream.limits.stops_on_disconnect {
            unwise.push(format!(
                "downstream.{name}.stops_on_disconnect frees a permit as soon as our side hangs up"
            ));
        }
    }
    if unwise.is_empty() {
        return Check::ok(NAME, format!("{} downstreams", config.downstream.len()));
    }
    Check::warning(
        NAME,
        unwise.join("; "),
        "raise shutdown.grace above call_timeout; keep stops_on_disconnect only where the downstream has been seen to stop",
    )
}

pub(super) fn server(server: &Server) -> Check {
    match server.untested() {
        None => Check::ok("server", server.to_string()),
        Some(words) => {
            Check::warning("server", format!("{server}: {words}"), "upgrade the server where you can")
        }
    }
}

impl Sight {
    fn get(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> i64 {
        self.get(name).parse().unwrap_or(0)
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name).to_ascii_lowercase().as_str(), "on" | "1" | "true")
    }

    pub(super) fn writable(&self, began: Result<(), Error>) -> Check {
        const NAME: &str = "writable";
        let other = "name the primary in the URL, or end the server's read-only mode";
        if self.is_on("transaction_read_only") || self.is_on("read_only") {
            return Check::problem(
                NAME,
                "the server takes no writes: a standby, or read-only by setting",
                other,
            );
        }
        match began {
            Ok(()) => Check::ok(NAME, "yes"),
            Err(error) => {
                Check::problem(NAME, error.to_string(), "permitq must be able to write the database")
            }
        }
    }

    /// Whether what was committed outlives power loss and fail-over.
    pub(super) fn durability(&self) -> Check {
        const NAME: &str = "durability";
        let mut lost = Vec::new();
        let mut must = |name: &str, good: bool, better: &str| {
            if !good {
                lost.push((format!("{name} is {}", self.get(name)), format!("{name} = {better}")));
            }
        };
        match self.dialect {
            Dialect::Postgres => {
                must("fsync", self.is_on("fsync"), "on");
                must("full_page_writes", self.is_on("full_page_writes"), "on");
                let weak = match self.get("synchronous_standby_names") {
                    "" => &["off"][..],
                    _ => &["off", "local", "remote_write"],
                };
                must("synchronous_commit", !weak.contains(&self.get("synchronous_commit")), "on");
            }
            Dialect::Mysql => {
                let name = "innodb_flush_log_at_trx_commit";
                must(name, self.number(name) == 1, "1");
                must("innodb_doublewrite", !self.get("innodb_doublewrite").eq_ignore_ascii_case("off"), "ON");
                must("sync_binlog", !self.is_on("log_bin") || self.number("sync_binlog") == 1, "1");
            }
            Dialect::Sqlite => {
                must("synchronous", self.number("synchronous") >= 2, "FULL");
                must("journal_mode", self.get("journal_mode") == "wal", "WAL");
            }
        }
        if lost.is_empty() {
            return Check::ok(NAME, "what is committed outlives power loss");
        }
        let (found, remedy): (Vec<_>, Vec<_>) = lost.into_iter().unzip();
        let found =
            format!("{}: power loss may take back what was committed, permits included", found.join(", "));
        Check::problem(NAME, found, format!("set {} on the server", remedy.join(", ")))
    }

    pub(super) fn isolation(&self) -> Check {
        const NAME: &str = "isolation";
        let level = match self.dialect {
            Dialect::Sqlite => return Check::ok(NAME, "serializable: one writer at a time"),
            Dialect::Mysql if self.settings.contains_key("tx_isolation") => self.get("tx_isolation"),
            Dialect::Postgres | Dialect::Mysql => self.get("transaction_isolation"),
        };
        let level = level.to_ascii_lowercase().replace('-', " ");
        if level == "read committed" {
            return Check::ok(NAME, level);
        }
        let found = format!("{level}, although each session asks for read committed");
        Check::problem(NAME, found, "connect past the pooler or proxy that takes session settings away")
    }

    /// The server must give up before the client does.
    pub(super) fn limits(&self, client: Duration) -> Check {
        const NAME: &str = "statement limit";
        // max_statement_time: seconds with a fraction; the others: milliseconds.
        let server = if let Some(seconds) = self.settings.get("max_statement_time") {
            seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        } else {
            let millis = self.number("statement_timeout").max(self.number("max_execution_time"));
            u64::try_from(millis).ok().map(Duration::from_millis)
        };
        let server = server.unwrap_or_default();
        let client = HumanDuration(client);
        if Duration::ZERO < server && server < client.0 {
            return Check::ok(NAME, format!("{} on the server, {client} here", span(server)));
        }
        let found = match server {
            Duration::ZERO => "none on the server, although each session sets one".to_owned(),
            server => format!("{} on the server, {client} here", span(server)),
        };
        Check::warning(NAME, found, "connect past the pooler or proxy that takes session settings away")
    }

    /// How many consumers more the server has room for.
    pub(super) fn connections(&self) -> Check {
        const NAME: &str = "connections";
        // Two loops and the heartbeat; on PostgreSQL the wake-up as well.
        let each = if self.dialect == Dialect::Postgres { 4 } else { 3 };
        let (used, status) = match self.dialect {
            Dialect::Mysql => (self.number("threads_connected"), "max_connections"),
            _ => (self.number("connections"), "max_connections"),
        };
        let (max, reserved) = (self.number(status), self.number("superuser_reserved_connections"));
        // One of them is ours, and ends with us.
        let fit = (max - reserved - used + 1).max(0) / each;
        let found = format!("{used} of {max} in use; {fit} consumers more fit, with {each} each");
        if fit >= 1 {
            return Check::ok(NAME, found);
        }
        Check::warning(NAME, found, "raise max_connections on the server, or end clients that are not needed")
    }

    pub(super) fn encryption(&self, url: &str) -> Check {
        const NAME: &str = "encryption";
        let encrypted = self.is_on("encrypted") || !self.get("ssl_cipher").is_empty();
        if encrypted {
            return Check::ok(NAME, "TLS");
        }
        if is_near(url) {
            return Check::ok(NAME, "none, and none needed: the server is on this host");
        }
        let remedy = match self.dialect {
            Dialect::Postgres => "end the URL with ?sslmode=verify-full&sslrootcert=FILE",
            _ => "end the URL with ?ssl-mode=VERIFY_IDENTITY&ssl-ca=FILE",
        };
        Check::warning(NAME, "none: payloads cross the network in the open", remedy)
    }

    /// Whether what permitq takes and keeps fits into one message to the server.
    pub(super) fn packets(&self) -> Check {
        const NAME: &str = "packets";
        let kibibytes = self.number("max_allowed_packet") >> 10;
        let found = format!("max_allowed_packet is {kibibytes} KiB");
        if kibibytes >= PACKET {
            return Check::ok(NAME, found);
        }
        let found = format!("{found}: what is larger, a payload or a batch of results, ends the connection");
        Check::warning(NAME, found, "set max_allowed_packet = 16M on the server")
    }

    pub(super) fn encoding(&self) -> Check {
        match self.get("server_encoding") {
            "UTF8" => Check::ok("encoding", "UTF8"),
            other => Check::warning(
                "encoding",
                format!("{other}: texts with characters that it lacks are refused"),
                "use a database created with ENCODING 'UTF8'",
            ),
        }
    }
}

/// Whether the URL names this very host.
fn is_near(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    ["127.", "localhost", "[::1]"].iter().any(|near| host.starts_with(near))
        || host.contains("%2F")
        || host.contains("%2f")
}

pub(super) fn pooler(pooled: bool) -> Check {
    if !pooled {
        return Check::ok("pooler", "none: each connection has a session of its own");
    }
    Check::problem(
        "pooler",
        "a pooler hands our statements to sessions as it likes: settings, prepared statements and LISTEN get lost",
        "connect to the server itself, or set pool_mode = session for permitq",
    )
}

/// `offset`: microseconds that the database is ahead.
pub(super) fn clock(dialect: Dialect, offset: i64, round_trip: Duration) -> Check {
    const NAME: &str = "clock";
    if dialect == Dialect::Sqlite {
        return Check::ok(
            NAME,
            "the database's clock is this host's; let nobody set it back while consumers run",
        );
    }
    let size = Duration::from_micros(offset.unsigned_abs());
    if size <= CLOCK + round_trip / 2 {
        return Check::ok(NAME, format!("the database's differs from this host's by {}", span(size)));
    }
    let ahead = if offset > 0 { "ahead of" } else { "behind" };
    Check::warning(
        NAME,
        format!(
            "the database's is {} {ahead} this host's; nothing depends on it but what people read in logs, and instants \
             that programs write themselves",
            span(size)
        ),
        "run NTP on both",
    )
}

pub(super) fn objects(facts: &Facts) -> Check {
    const NAME: &str = "tables and indexes";
    if !facts.altered.is_empty() {
        return Check::problem(
            NAME,
            facts.altered.join(", "),
            "ALTER TABLE … ENGINE = InnoDB, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin (MySQL: utf8mb4_0900_bin)",
        );
    }
    if !facts.missing.is_empty() {
        return Check::problem(
            NAME,
            format!("missing, invalid or switched off: {}", facts.missing.join(", ")),
            "create them as in sql/<database>/migrations",
        );
    }
    let triggers = if facts.sees_triggers {
        ""
    } else {
        "; triggers are not visible to this user, and were not checked"
    };
    Check::ok(NAME, format!("all that the migrations make are there{triggers}"))
}

pub(super) fn rights(denied: &[String]) -> Check {
    if denied.is_empty() {
        return Check::ok("rights", "all that a consumer needs");
    }
    Check::problem(
        "rights",
        format!("missing: {}", denied.join(", ")),
        "grant them, as in sql/README.md, \"Least privilege\"",
    )
}

/// Those that the configuration names must be there.
pub(super) fn semaphores(config: &Config, semaphores: &[Semaphore]) -> Check {
    const NAME: &str = "semaphores";
    let there: BTreeSet<_> = semaphores.iter().map(|semaphore| semaphore.name.as_str()).collect();
    let wanted: BTreeSet<_> =
        config.downstream.values().map(|downstream| downstream.semaphore.as_str()).collect();
    let missing: Vec<_> = wanted.difference(&there).copied().collect();
    if !missing.is_empty() {
        let add: Vec<_> = missing.iter().map(|name| format!("`permitq permits add {name} N`")).collect();
        let found = format!(
            "the configuration names {}, which do not exist: their tasks wait for ever",
            missing.join(", ")
        );
        return Check::problem(
            NAME,
            found,
            format!("{}, with as many permits as the downstream bears", add.join(", ")),
        );
    }
    let shut: Vec<_> =
        semaphores.iter().filter(|it| it.max_permits == 0).map(|semaphore| semaphore.name.as_str()).collect();
    if !shut.is_empty() {
        let found = format!("{}: max_permits is 0, nothing starts", shut.join(", "));
        return Check::warning(NAME, found, "`permitq permits set N` opens it again");
    }
    let all: Vec<_> = semaphores.iter().map(|it| format!("{} {}", it.name, it.max_permits)).collect();
    Check::ok(NAME, format!("max_permits: {}", all.join(", ")))
}

pub(super) fn counters(semaphores: &[Semaphore]) -> Check {
    let drifted = semaphores.iter().filter(|it| it.in_use != it.held + it.cooling);
    let drifted: Vec<_> = drifted
        .map(|it| {
            format!("{}: in_use says {}, {} are held or cooling", it.name, it.in_use, it.held + it.cooling)
        })
        .collect();
    if drifted.is_empty() {
        return Check::ok("counters", "in_use is what is held and cooling");
    }
    Check::warning(
        "counters",
        drifted.join("; "),
        "look again; where it stays, `permitq audit --repair`, and find out who writes the table",
    )
}

pub(super) fn consumers(consumers: &[ConsumerRow], now: Timestamp) -> Check {
    const NAME: &str = "consumers";
    let (fresh, over): (Vec<_>, Vec<_>) = consumers.iter().partition(|consumer| consumer.lease_until > now);
    if !over.is_empty() {
        let over: Vec<_> = over
            .iter()
            .map(|it| format!("{} (lease over {})", it.id, when::relative(now, it.lease_until)))
            .collect();
        return Check::warning(
            NAME,
            format!("{} alive; not yet taken back: {}", fresh.len(), over.join(", ")),
            "a consumer with the role reclaim takes back what they hold, within lease.reclaim: is one running?",
        );
    }
    let Some(shortest) = fresh.iter().map(|consumer| consumer.lease_until).min() else {
        return Check::warning(
            NAME,
            "none is alive: tasks wait",
            "start one: `permitq run`, or `permitq fleet`",
        );
    };
    Check::ok(NAME, format!("{} alive; the next lease ends {}", fresh.len(), when::relative(now, shortest)))
}

/// Permits that no slot can take are idle.
pub(super) fn slots(consumers: &[ConsumerRow], semaphores: &[Semaphore]) -> Check {
    const NAME: &str = "slots";
    let mut few = Vec::new();
    let mut all = Vec::new();
    for Semaphore { name, max_permits, .. } in semaphores {
        let mut slots = 0;
        for consumer in consumers.iter().filter(|consumer| consumer.state == "alive") {
            let serves: BTreeMap<String, String> = serde_json::from_str(&consumer.serves).unwrap_or_default();
            slots += if serves.values().any(|semaphore| semaphore == name) { consumer.slots } else { 0 };
        }
        let words = format!("{name}: {slots} slots for {max_permits} permits");
        if slots < *max_permits && !consumers.is_empty() {
            few.push(words.clone());
        }
        all.push(words);
    }
    if few.is_empty() {
        return Check::ok(NAME, all.join("; "));
    }
    let remedy = "run more consumers, or raise consumer.slots: permits beyond the slots stay idle";
    Check::warning(NAME, few.join("; "), remedy)
}

#[cfg(test)]
mod tests;
