//! Servers that cannot be used, and users who may not: one line that says where, what and what to do, and nothing
//! half-done.

use std::thread;

use loadtest::servers::{self, Server};
use sqlx::{AnyConnection, Connection};

use super::{Bench, Ran};

impl Bench {
    /// `permitq ARGS --database URL` fails with one line of these words.
    pub(super) fn refused(&self, url: &str, args: &[&str], words: &[&str]) {
        let ran = self.at(url, args).fails(1, words).says(&["error: "]);
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }

    pub(super) fn at(&self, url: &str, args: &[&str]) -> Ran {
        self.run(&[args, &["--database", url]].concat())
    }
}

/// The URL with another user, as `name` or `name:password`.
pub(super) fn user(url: &str, user: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    format!("{scheme}://{user}@{}", rest.split_once('@').unwrap().1)
}

/// The URL with another port.
fn port(url: &str, port: u16) -> String {
    let (begin, rest) = url.rsplit_once(':').unwrap();
    format!("{begin}:{port}/{}", rest.split_once('/').unwrap().1)
}

/// A port that nobody listens at: taken, and given back.
fn nobody() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn port_of(url: &str) -> u16 {
    url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0.parse().unwrap()
}

#[test]
fn a_typo_in_the_url_is_told_apart() {
    let bench = Bench::new();
    let servers = [(servers::postgres(), servers::mariadb()), (servers::mariadb(), servers::postgres())];
    for (server, other) in servers {
        let url = server.database("typo");
        let (host, shown) = (url.replace("127.0.0.1", "127.0.0.2"), "cannot open database");
        bench.refused(
            &host,
            &["tasks"],
            &[shown, "127.0.0.2", "refused", "are host and port in the URL right?"],
        );
        let port_nobody = port(&url, nobody());
        bench.refused(&port_nobody, &["migrate"], &[shown, "is the server running"]);
        let database = url.replace("typo", "tpyo");
        bench.refused(&database, &["migrate"], &[shown, "tpyo", "create the database"]);
        bench.at(&url.replacen("://", "x://", 1), &["tasks"]).fails(2, &["command line: database.url"]);
        bench.at(&url.replace("127.0.0.1:", "127.0.0.1:x"), &["tasks"]).fails(2, &["not a URL"]);
        // Another product's port: one of them waits to be spoken to, the other speaks first.
        let url = port(&url, port_of(&other.admin_url()));
        let ran = bench
            .command(&["tasks", "--database", &url])
            .env("PERMITQ_DATABASE__STATEMENT_TIMEOUT", "1s")
            .env("PERMITQ_LEASE__DURATION", "1m")
            .output()
            .unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), err.lines().count()), (Some(1), 1), "{err}");
        assert!(err.contains(shown) && err.contains("does a server of the URL's scheme listen"), "{err}");
    }
}

#[test]
fn a_wrong_password_is_not_shown() {
    let bench = Bench::new();
    let mut postgres = Server::postgres(false);
    let url = postgres.database("locked");
    postgres.execute("ALTER ROLE permitq PASSWORD 'right'");
    postgres
        .set_hba("host all postgres 127.0.0.1/32 trust\nhost locked permitq 127.0.0.1/32 scram-sha-256\n");
    let mariadb = servers::mariadb();
    let maria = mariadb.database("locked");
    mariadb.execute("CREATE USER locked@'127.0.0.1' IDENTIFIED BY 'right'");
    mariadb.execute("GRANT ALL ON locked.* TO locked@'127.0.0.1'");
    for (url, name) in [(url.clone(), "permitq"), (maria, "locked")] {
        let shown = format!("{name}:***@127.0.0.1");
        let wrong = user(&url, &format!("{name}:hunter2"));
        bench.refused(&wrong, &["migrate"], &[&shown, "check user and password in the URL"]);
        assert!(!bench.at(&wrong, &["migrate"]).err.contains("hunter2"));
        bench.refused(&user(&url, "nemo"), &["migrate"], &["nemo"]);
        bench.at(&user(&url, &format!("{name}:right")), &["migrate"]).ok();
    }
    // A host that pg_hba.conf does not know.
    bench.refused(
        &url.replace("locked", "postgres"),
        &["migrate"],
        &["let this host and user in, in its pg_hba.conf"],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_connections() {
    let bench = Bench::new();
    let mut postgres = Server::postgres(false);
    let full = postgres.database("full");
    postgres.add_options(&["-c", "max_connections=4", "-c", "superuser_reserved_connections=3"]);
    let _last = AnyConnection::connect(&full).await.unwrap();
    bench.refused(&full, &["migrate"], &["remaining connection slots", "a consumer takes 3 connections"]);

    let mariadb = Server::mariadb_with(false, &["--max-connections=10"]);
    let full = mariadb.database("full");
    let mut held = Vec::new();
    while let Ok(conn) = AnyConnection::connect(&full).await {
        held.push(conn);
    }
    bench.refused(&full, &["migrate"], &["Too many connections", "raise the server's limit"]);
}

#[test]
fn a_server_that_is_too_old() {
    let bench = Bench::new();
    // It lies about its age.
    let mariadb = Server::mariadb_with(false, &["--version=10.6.18-MariaDB"]);
    let url = mariadb.database("old");
    for command in ["migrate", "tasks"] {
        let words = ["MariaDB 10.6.18 is too old", "needs MariaDB 10.10 or newer", "upgrade the server"];
        bench.refused(&url, &[command], &words);
    }

    let server = servers::postgres();
    let url = server.database("old");
    let statement =
        "CREATE FUNCTION old.version() RETURNS text LANGUAGE sql AS $$ SELECT 'PostgreSQL 12.22' $$";
    let mut hand = Hand::of(&url);
    hand.execute("CREATE SCHEMA old");
    hand.execute(statement);
    hand.execute("ALTER ROLE permitq IN DATABASE old SET search_path = old, pg_catalog, public");
    for command in ["migrate", "tasks"] {
        bench.refused(&url, &[command], &["PostgreSQL 12.22 is too old", "needs PostgreSQL 13 or newer"]);
    }
    assert_eq!(hand.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'permitq%'"), 0);
}

#[test]
fn many_processes_migrate_at_once() {
    let file = Bench::new();
    let urls = [
        format!("sqlite://{}", file.path("together.db").display()),
        servers::postgres().database("together"),
        servers::mariadb().database("together"),
    ];
    for url in urls {
        let bench = Bench::new();
        let ran: Vec<_> = thread::scope(|scope| {
            let migrate = || bench.at(&url, &["migrate"]).ok().out;
            let started: Vec<_> = (0..4).map(|_| scope.spawn(migrate)).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ran.iter().filter(|out| out.contains("created schema")).count(), 1, "{ran:?}");
        assert_eq!(ran.iter().filter(|out| out.contains("nothing to do")).count(), 3, "{ran:?}");
    }
}

#[test]
fn a_schema_from_a_newer_binary() {
    let bench = Bench::new();
    for server in [servers::postgres(), servers::mariadb()] {
        let url = server.database("newer");
        bench.at(&url, &["migrate"]).ok();
        Hand::of(&url).execute("UPDATE permitq_schema SET version = 9, min_binary = 9");
        for args in [&["tasks"][..], &["migrate"], &["enqueue", "--kind", "a"]] {
            bench.refused(&url, args, &["schema version 9", "needs a newer binary; this one knows 3"]);
        }
    }
}

#[test]
fn texts_are_whole_in_a_latin1_database() {
    let server = servers::mariadb();
    let url = server.database("latin1");
    server.execute("ALTER DATABASE latin1 CHARACTER SET latin1 COLLATE latin1_swedish_ci");
    let bench = Bench::new();
    bench.at(&url, &["migrate"]).ok();
    let (payload, key) = (r#"{"name": "Zoë 🦀"}"#, "größe/🦀");
    bench.at(&url, &["enqueue", "--kind", "a", "--key", key, "--payload", payload]).ok();
    let shown = bench.at(&url, &["task", "show", "1", "--json"]).ok().value();
    assert_eq!((&shown["payload"]["name"], &shown["biz_key"]), (&"Zoë 🦀".into(), &key.into()));
    let query = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'latin1'
                   AND table_type = 'BASE TABLE' AND table_collation NOT LIKE 'utf8mb4%'";
    assert_eq!(Hand::of(&url).number(query), 0);

    // PostgreSQL has one encoding per database: what it cannot hold is refused, and no character is lost.
    let server = servers::postgres();
    server.execute("CREATE DATABASE latin1 OWNER permitq ENCODING 'LATIN1' TEMPLATE template0");
    let url = server.admin_url().replace("postgres@", "permitq@").replace("/postgres", "/latin1");
    bench.at(&url, &["migrate"]).ok();
    let enqueue = ["enqueue", "--kind", "a", "--payload", payload];
    bench.refused(&url, &enqueue, &["refused", "has no equivalent in encoding \"LATIN1\""]);
    bench.at(&url, &["enqueue", "--kind", "a", "--payload", r#"{"name": "Zoë"}"#]).ok();
    assert_eq!(bench.at(&url, &["tasks", "--json"]).ok().value()["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_user_without_rights() {
    let bench = Bench::new();
    let grants = "sql/README.md";
    for (server, name, admin) in
        [(servers::postgres(), "bare", "postgres"), (servers::mariadb(), "bare@'127.0.0.1'", "root")]
    {
        let url = server.database("rights");
        let bare = user(&url, "bare");
        server.execute(format!("CREATE USER {name}"));
        let mut hand = Hand::of(&user(&url, admin));
        bench.refused(&bare, &["migrate"], &["denied", grants]);
        let tables = "SELECT count(*) FROM information_schema.tables
                       WHERE table_name LIKE 'permitq%' AND table_schema IN ('rights', 'public')";
        assert_eq!(hand.number(tables), 0, "nothing is left behind");

        bench.at(&url, &["migrate"]).ok();
        bench.refused(&bare, &["tasks"], &[grants]);
        for table in ["schema", "semaphore", "limit", "task", "cooling", "attempt", "consumer", "action"] {
            hand.execute(&format!("GRANT SELECT, INSERT, UPDATE ON permitq_{table} TO {name}"));
        }
        bench.at(&bare, &["tasks"]).ok();
        bench.at(&bare, &["enqueue", "--kind", "a"]).ok();
        hand.execute(&format!("REVOKE INSERT ON permitq_task FROM {name}"));
        let words = ["denied", "permitq_task", "permitq doctor", grants];
        bench.refused(&bare, &["enqueue", "--kind", "a"], &words);
        assert_eq!(hand.number("SELECT count(*) FROM permitq_task"), 1);
    }
}

#[test]
fn a_migration_that_was_cut_short_can_be_finished() {
    let bench = Bench::new();
    let server = servers::mariadb();
    let url = server.database("short");
    // DDL commits by itself there. Everything but triggers.
    server.execute("CREATE USER short@'127.0.0.1'");
    server.execute("GRANT SELECT, INSERT, UPDATE, CREATE, DROP, ALTER, INDEX, CREATE VIEW, SHOW VIEW ON short.* TO short@'127.0.0.1'");
    let short = user(&url, "short");
    bench.refused(&short, &["migrate"], &["TRIGGER command denied", "sql/README.md"]);
    bench.refused(&short, &["tasks"], &["no permitq tables", "permitq migrate"]);
    server.execute("GRANT TRIGGER ON short.* TO short@'127.0.0.1'");
    bench.at(&short, &["migrate"]).ok().shows(&["created schema version"]);
    bench.at(&short, &["enqueue", "--kind", "a"]).ok();
}

/// A person at a SQL client, in tests without a runtime.
pub(super) struct Hand(tokio::runtime::Runtime, AnyConnection);

impl Hand {
    pub(super) fn of(url: &str) -> Self {
        sqlx::any::install_default_drivers();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let conn = runtime.block_on(AnyConnection::connect(url)).unwrap();
        Self(runtime, conn)
    }

    pub(super) fn execute(&mut self, statement: &str) {
        let statement = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned()));
        self.0.block_on(statement.execute(&mut self.1)).unwrap();
    }

    pub(super) fn texts(&mut self, query: &str) -> Vec<String> {
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()));
        self.0.block_on(query.fetch_all(&mut self.1)).unwrap()
    }

    fn number(&mut self, query: &str) -> i64 {
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()));
        self.0.block_on(query.fetch_one(&mut self.1)).unwrap()
    }
}
