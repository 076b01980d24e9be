//! The configuration as its users meet it: a file, an environment, a command line, and what comes of them.

mod problems;

use super::*;

/// A file's text, an environment and a command line.
#[derive(Clone, Copy, Default)]
struct Given<'a> {
    file: &'a str,
    env: &'a [(&'a str, &'a str)],
    flags: &'a [(&'a str, &'a str)],
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

impl Given<'_> {
    fn load(self) -> Result<Config, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("permitq.toml");
        std::fs::write(&path, self.file).unwrap();
        let sources = Sources {
            default_file: path.clone(),
            env: owned(self.env).into_iter().collect(),
            flags: owned(self.flags),
            ..Sources::default()
        };
        // The folder has another name every time; the tests speak of the file alone.
        let local = |text: &str| text.replace(&path.display().to_string(), "permitq.toml");
        match Config::load(&sources) {
            Ok(mut config) => {
                for effective in &mut config.effective {
                    effective.origin = local(&effective.origin);
                }
                Ok(config)
            }
            Err(problems) => Err(local(&problems.to_string()).lines().map(str::to_owned).collect()),
        }
    }
}

fn file(text: &str) -> Result<Config, Vec<String>> {
    Given { file: text, ..Given::default() }.load()
}

fn env(env: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    Given { env, ..Given::default() }.load()
}

fn effective(config: &Config, key: &str) -> (String, String) {
    let found = config.explain().into_iter().find(|effective| effective.key == key).unwrap();
    (found.value, found.origin)
}

/// The example of the documentation.
const EXAMPLE: &str = r#"
[database]
url = "sqlite://permitq.db"

[consumer]
slots = 4
poll = "1s"

[lease]
duration = "2m"
heartbeat = "15s"
reclaim = "15s"

[downstream.default]
url = "http://127.0.0.1:9000/call"
semaphore = "default"
method = "POST"
connect_timeout = "5s"
read_timeout = "8m"
call_timeout = "8m"
tcp_user_timeout = "60s"
start_window = "10s"
stops_on_disconnect = false
unclear_statuses = [202, 408, 502, 504, 520, 521, 522, 523, 524]
headers = { Authorization = "env:REPORT_TOKEN" }

[retry]
max_attempts = 3
backoff = "5s"
backoff_cap = "10m"

[shutdown]
grace = "10m"

[retention]
succeeded = "7d"
failed = "30d"
cancelled = "30d"
per_job = 10000

[admin]
listen = "127.0.0.1:8080"

[log]
format = "human"
"#;

#[test]
fn nothing_at_all_is_the_defaults() {
    let mut config = file("").unwrap();
    assert!(config.explain().iter().all(|effective| effective.origin == "default"));
    config.effective.clear();
    assert_eq!(config, Config::default());
    assert_eq!(config.validate(), Ok(()));
    let refusal = config.require_downstream().unwrap_err().to_string();
    assert!(refusal.contains("[downstream.default]"), "{refusal}");
}

#[test]
fn the_example_is_the_defaults_with_a_downstream() {
    let config = Given { file: EXAMPLE, env: &[("REPORT_TOKEN", "Bearer hunter2")], ..Given::default() };
    let mut config = config.load().unwrap();
    assert_eq!(effective(&config, "lease.duration"), ("2m".to_owned(), "permitq.toml".to_owned()));
    assert_eq!(config.require_downstream().unwrap().len(), 1);
    assert_eq!(config.admin.listen, "127.0.0.1:8080".parse().ok());
    let downstream = config.downstream.remove("default").unwrap();
    assert_eq!(downstream.headers["authorization"], "Bearer hunter2");
    let plain = Downstream::new("http://127.0.0.1:9000/call".parse().unwrap());
    assert_eq!(Downstream { headers: HeaderMap::new(), ..downstream }, plain);
    assert_eq!(plain.limits, Limits::default());
    config.effective.clear();
    config.admin = Admin::default();
    assert_eq!(config, Config::default());
}

#[test]
fn later_layers_beat_earlier_ones() {
    let lease = "[lease]\nduration = \"3m\"\nheartbeat = \"20s\"\n[consumer]\nslots = 5";
    let env = [("PERMITQ_LEASE__DURATION", "4m"), ("PERMITQ_CONSUMER__SLOTS", "6")];
    let config = Given { file: lease, env: &env, flags: &[("consumer.slots", "7")] }.load().unwrap();
    for (key, value, origin) in [
        ("lease.reclaim", "15s", "default"),
        ("lease.heartbeat", "20s", "permitq.toml"),
        ("lease.duration", "4m", "PERMITQ_LEASE__DURATION"),
        ("consumer.slots", "7", "command line"),
        ("consumer.name", "", "default"),
    ] {
        assert_eq!(effective(&config, key), (value.to_owned(), origin.to_owned()), "{key}");
    }
    assert_eq!((config.consumer.slots, config.lease.duration), (7, Duration::from_mins(4)));
}

#[test]
fn the_database_has_two_short_names() {
    let toml = "[database]\nurl = \"sqlite://file.db\"";
    let env = [
        ("DATABASE_URL", "postgres://short/db"),
        ("PERMITQ_DATABASE_URL", "postgres://middle/db"),
        ("PERMITQ_DATABASE__URL", "postgres://long/db"),
    ];
    let flags = [("database.url", "mysql://flag/db")];
    for (env, flags, url, origin) in [
        (&env[..0], &flags[..0], "sqlite://file.db", "permitq.toml"),
        (&env[..1], &flags[..0], "postgres://short/db", "DATABASE_URL"),
        (&env[..2], &flags[..0], "postgres://middle/db", "PERMITQ_DATABASE_URL"),
        (&env[..3], &flags[..0], "postgres://long/db", "PERMITQ_DATABASE__URL"),
        (&env[..3], &flags[..1], "mysql://flag/db", "command line"),
    ] {
        let config = Given { file: toml, env, flags }.load().unwrap();
        assert_eq!(effective(&config, "database.url"), (url.to_owned(), origin.to_owned()));
    }
}

#[test]
fn lists_come_from_the_file_or_with_commas() {
    let config = env(&[
        ("PERMITQ_CONSUMER__ROLES", "reclaim, consume"),
        ("PERMITQ_DATABASE__URL", "postgres://a/db,postgres://b/db"),
        ("PERMITQ_DOWNSTREAM__REPORT__URL", "https://report/call"),
        ("PERMITQ_DOWNSTREAM__REPORT__UNCLEAR_STATUSES", "504,202,504"),
    ])
    .unwrap();
    assert_eq!(config.consumer.roles, [Role::Reclaim, Role::Consume]);
    assert_eq!(config.database.url.len(), 2);
    assert_eq!(config.downstream["report"].unclear_statuses, [202, 504]);
    let config = file("[database]\nurl = [\"sqlite://a.db\", \"sqlite://b.db\"]").unwrap();
    assert_eq!(config.database.url.len(), 2);
}

#[test]
fn a_header_is_replaced_whatever_its_case() {
    let toml =
        "[downstream.default]\nurl = \"http://h\"\nheaders = { X-Team = \"file\", Accept = \"text/plain\" }";
    let env = [("PERMITQ_DOWNSTREAM__DEFAULT__HEADERS__X-TEAM", "env")];
    let config = Given { file: toml, env: &env, ..Given::default() }.load().unwrap();
    let headers = &config.downstream["default"].headers;
    assert_eq!((headers.len(), &headers["x-team"]), (2, &"env".parse().unwrap()));
}

#[test]
fn limits_hold_the_policies_of_downstream_and_retry() {
    let config = file(
        r#"
        [downstream.report]
        url = "http://report"
        call_timeout = "1m"
        start_window = "5s"
        stops_on_disconnect = true
        on_abandon = "retry_after_cooling"
        method = "PUT"
        [retry]
        max_attempts = 9
        "#,
    )
    .unwrap();
    let report = &config.downstream["report"];
    assert_eq!(
        report.limits,
        Limits {
            call_timeout: Duration::from_mins(1),
            start_window: Duration::from_secs(5),
            stops_on_disconnect: true,
            on_abandon: crate::model::OnAbandon::RetryAfterCooling,
            retry: Retry { max_attempts: 9, ..Retry::default() },
            ..Limits::default()
        }
    );
    assert_eq!((report.read_timeout, report.method.as_str()), (Duration::from_mins(1), "PUT"));
}

#[test]
fn names_that_are_no_keys_are_left_alone() {
    let config = env(&[
        ("PERMITQ_LOG", "debug"),
        ("PERMITQ_CONFIG", ""),
        ("PERMITQ_CONSUMER__NAME", ""),
        ("PERMITQ_PORT", "tcp://10.0.0.1:80"),
        ("HOME", "/root"),
    ]);
    assert_eq!(config.unwrap().consumer.name, None);
    let digits = env(&[("PERMITQ_CONSUMER__NAME", "0123")]).unwrap();
    assert_eq!(digits.consumer.name.as_deref(), Some("0123"));
}

#[test]
fn secrets_are_never_shown() {
    let toml = r#"
        [database]
        url = ["postgres://u:hunter2@h/db", "env:URL"]
        [downstream.default]
        url = "http://h/?token=hunter2&page=1"
        [downstream.default.headers]
        Authorization = "Bearer hunter2"
        X-Api-Key = "hunter2"
        X-Other = "env:OTHER"
        X-Team = "reports"
    "#;
    let env = [("OTHER", "hunter2"), ("URL", "mysql://u:hunter2@h/db")];
    let config = Given { file: toml, env: &env, ..Given::default() }.load().unwrap();
    for (key, value) in [
        ("database.url", "postgres://u:***@h/db,mysql://u:***@h/db"),
        ("downstream.default.url", "http://h/?token=***&page=***"),
        ("downstream.default.headers.authorization", "***"),
        ("downstream.default.headers.x-api-key", "***"),
        ("downstream.default.headers.x-other", "env:OTHER"),
        ("downstream.default.headers.x-team", "***"),
    ] {
        assert_eq!(effective(&config, key).0, value, "{key}");
    }
    let shown =
        format!("{config:?} {:?} {}", config.explain(), serde_json::to_string(&config.explain()).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    let default = &config.downstream["default"];
    let secrets: Vec<_> = default.secrets().iter().map(|secret| secret.expose().to_owned()).collect();
    assert_eq!(secrets.iter().filter(|secret| secret.contains("hunter2")).count(), 6, "{secrets:?}");
    assert!(!secrets.contains(&"reports".to_owned()), "{secrets:?}");
    assert_eq!(default.headers["x-other"], "hunter2");
    assert!(default.url.expose().as_str().contains("hunter2"));
    assert!(config.database.url[1].expose().contains("hunter2"));
}
