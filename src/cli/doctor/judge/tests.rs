use super::super::Level;
use super::*;

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn check(dialect: Dialect, pairs: &[(&str, &str)], judge: impl Fn(&Sight) -> Check) -> Check {
    judge(&Sight { dialect, settings: settings(pairs) })
}

fn semaphore(name: &str, max_permits: i64, in_use: i64) -> Semaphore {
    Semaphore { name: name.to_owned(), max_permits, in_use, held: 1, cooling: 1, waiting: 0 }
}

#[test]
fn what_power_loss_takes_back_is_a_problem() {
    use Dialect::{Mysql, Postgres, Sqlite};
    let safe = [("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "on")];
    for (dialect, more, bad) in [
        (Postgres, &safe[..], None),
        (Postgres, &[("fsync", "off")], Some("fsync is off")),
        (Postgres, &[("full_page_writes", "off")], Some("full_page_writes is off")),
        (Postgres, &[("synchronous_commit", "off")], Some("synchronous_commit is off")),
        (Postgres, &[("synchronous_commit", "local")], None),
        (
            Postgres,
            &[("synchronous_commit", "local"), ("synchronous_standby_names", "standby")],
            Some("synchronous_commit is local"),
        ),
        (Mysql, &[("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "OFF"), ("sync_binlog", "0")], None),
        (
            Mysql,
            &[("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "ON"), ("sync_binlog", "0")],
            Some("sync_binlog is 0"),
        ),
        (Mysql, &[("innodb_flush_log_at_trx_commit", "2")], Some("innodb_flush_log_at_trx_commit is 2")),
        (Sqlite, &[("synchronous", "2"), ("journal_mode", "wal")], None),
        (Sqlite, &[("synchronous", "1"), ("journal_mode", "wal")], Some("synchronous is 1")),
        (Sqlite, &[("synchronous", "2"), ("journal_mode", "delete")], Some("journal_mode is delete")),
    ] {
        let mut all = if dialect == Postgres { safe.to_vec() } else { Vec::new() };
        all.extend(more);
        let check = check(dialect, &all, Sight::durability);
        assert_eq!(check.level, if bad.is_some() { Level::Problem } else { Level::Ok }, "{check:?}");
        assert!(check.found.contains(bad.unwrap_or("outlives power loss")), "{check:?}");
    }
}

#[test]
fn a_session_that_is_not_ours_is_seen() {
    let isolation = |dialect, name, value| check(dialect, &[(name, value)], Sight::isolation).level;
    assert_eq!(isolation(Dialect::Postgres, "transaction_isolation", "read committed"), Level::Ok);
    assert_eq!(isolation(Dialect::Postgres, "transaction_isolation", "serializable"), Level::Problem);
    assert_eq!(isolation(Dialect::Mysql, "tx_isolation", "READ-COMMITTED"), Level::Ok);
    assert_eq!(isolation(Dialect::Mysql, "transaction_isolation", "REPEATABLE-READ"), Level::Problem);
    let limits =
        |name, value| check(Dialect::Postgres, &[(name, value)], |it| it.limits(Duration::from_secs(10)));
    assert_eq!(limits("statement_timeout", "8000").level, Level::Ok);
    assert_eq!(limits("max_statement_time", "8.000000").level, Level::Ok);
    assert_eq!(limits("max_execution_time", "8000").level, Level::Ok);
    assert_eq!(limits("statement_timeout", "0").level, Level::Warning);
    assert_eq!(limits("max_statement_time", "0.000000").level, Level::Warning);
    assert_eq!(limits("statement_timeout", "30000").level, Level::Warning);
    assert_eq!(pooler(true).level, Level::Problem);
}

#[test]
fn a_server_that_takes_no_writes() {
    let writable = |pairs: &[_]| check(Dialect::Postgres, pairs, |it| it.writable(Ok(()))).level;
    assert_eq!(writable(&[("transaction_read_only", "off")]), Level::Ok);
    assert_eq!(writable(&[("transaction_read_only", "on")]), Level::Problem);
    assert_eq!(writable(&[("read_only", "ON")]), Level::Problem);
}

#[test]
fn room_for_consumers() {
    let postgres = |used| {
        let pairs =
            [("max_connections", "100"), ("superuser_reserved_connections", "3"), ("connections", used)];
        check(Dialect::Postgres, &pairs, Sight::connections)
    };
    assert!(postgres("10").found.contains("22 consumers more fit, with 4 each"), "{:?}", postgres("10"));
    assert_eq!(postgres("94").level, Level::Ok);
    assert_eq!(postgres("95").level, Level::Warning);
    let pairs = [("max_connections", "12"), ("threads_connected", "1")];
    assert!(
        check(Dialect::Mysql, &pairs, Sight::connections).found.contains("4 consumers more fit, with 3 each")
    );
}

#[test]
fn messages_that_do_not_fit_are_told() {
    let packets = |bytes: &str| check(Dialect::Mysql, &[("max_allowed_packet", bytes)], Sight::packets);
    assert_eq!(packets("16777216").level, Level::Ok);
    assert_eq!(packets("16776192").level, Level::Warning);
    assert!(packets("1048576").found.starts_with("max_allowed_packet is 1024 KiB: "));
}

#[test]
fn payloads_in_the_open() {
    let encryption = |pairs: &[_], url| check(Dialect::Postgres, pairs, |it| it.encryption(url)).level;
    assert_eq!(encryption(&[("encrypted", "true")], "postgres://u@db/q"), Level::Ok);
    assert_eq!(encryption(&[("ssl_cipher", "TLS_AES_256")], "mysql://db/q"), Level::Ok);
    assert_eq!(encryption(&[], "postgres://u:***@localhost:5432/q"), Level::Ok);
    assert_eq!(encryption(&[], "postgres://127.0.0.1/q"), Level::Ok);
    assert_eq!(encryption(&[], "postgres://%2Fvar%2Frun/q"), Level::Ok);
    assert_eq!(encryption(&[("encrypted", "false")], "postgres://u@db.internal/localhost"), Level::Warning);
}

#[test]
fn clocks_are_compared_beyond_the_round_trip() {
    let clock =
        |offset, round_trip| clock(Dialect::Postgres, offset, Duration::from_millis(round_trip)).level;
    assert_eq!(clock(1_900_000, 1), Level::Ok);
    assert_eq!(clock(2_100_000, 1), Level::Warning);
    assert_eq!(clock(-2_100_000, 1), Level::Warning);
    assert_eq!(clock(2_100_000, 500), Level::Ok);
}

#[test]
fn what_the_migrations_made_must_be_there() {
    let facts = |missing: &[&str], altered: &[&str], sees_triggers| {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        objects(&Facts {
            missing: words(missing),
            altered: words(altered),
            sees_triggers,
            ..Facts::default()
        })
    };
    assert_eq!(facts(&[], &[], true).level, Level::Ok);
    assert!(facts(&[], &[], false).found.contains("not checked"));
    assert_eq!(facts(&["index permitq_task_ready"], &[], true).level, Level::Problem);
    assert_eq!(facts(&[], &["table permitq_task is MyISAM latin1_swedish_ci"], true).level, Level::Problem);
    assert_eq!(rights(&["INSERT on permitq_task".to_owned()]).level, Level::Problem);
}

#[test]
fn semaphores_are_there_open_and_counted() {
    let mut config = Config::default();
    let there = [semaphore("default", 4, 2)];
    assert_eq!(semaphores(&config, &there).level, Level::Ok);
    let endpoint = "http://127.0.0.1:9000/call".parse().unwrap();
    let mut mail = crate::config::Downstream::new(endpoint);
    mail.semaphore = "mail".to_owned();
    config.downstream.insert("mail".to_owned(), mail);
    let check = semaphores(&config, &there);
    assert_eq!(check.level, Level::Problem);
    assert!(check.remedy.unwrap().contains("permitq permits add mail N"));
    assert_eq!(semaphores(&Config::default(), &[semaphore("default", 0, 2)]).level, Level::Warning);
    assert_eq!(counters(&there).level, Level::Ok);
    assert_eq!(counters(&[semaphore("default", 4, 3)]).level, Level::Warning);
}

#[test]
fn a_stop_that_gives_calls_up_is_told() {
    let mut config = Config::default();
    assert_eq!(configuration(&config).level, Level::Ok);
    let endpoint: crate::config::Endpoint = "http://127.0.0.1:9000/call".parse().unwrap();
    config.downstream.insert("a".to_owned(), crate::config::Downstream::new(endpoint));
    assert_eq!(configuration(&config).level, Level::Ok);
    config.shutdown.grace = Duration::from_secs(30);
    assert!(configuration(&config).found.contains("shutdown.grace is 30s"), "{:?}", configuration(&config));
    config.shutdown.grace = Duration::from_hours(1);
    config.downstream.get_mut("a").unwrap().limits.stops_on_disconnect = true;
    assert_eq!(configuration(&config).level, Level::Warning);
}
