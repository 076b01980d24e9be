//! The test servers themselves: what every other test takes for granted.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use loadtest::servers::cluster::{Galera, Pair};
use loadtest::servers::{Server, mariadb, postgres};
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tokio::time::timeout;

use crate::support::until;

async fn connect(url: &str) -> AnyConnection {
    install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

async fn number(connection: &mut AnyConnection, query: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(connection).await.unwrap()
}

async fn execute(connection: &mut AnyConnection, statement: &str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}

#[tokio::test]
async fn databases_of_a_shared_server_are_apart() {
    for server in [postgres(), mariadb()] {
        let (one, two) = (server.database("apart_one"), server.database("apart_two"));
        for url in [one, two] {
            let mut connection = connect(&url).await;
            execute(&mut connection, "create table t (id bigint)").await.unwrap();
            assert_eq!(number(&mut connection, "select count(*) from t").await, 0);
        }
    }
}

/// The server's clock steps, forward and back, for connections that are open and for new ones.
async fn clock(mut server: Server) {
    use std::time::SystemTime;

    server.add_clock();
    let url = server.database("clock");
    let mut connection = connect(&url).await;
    let query = if url.starts_with("postgres") {
        "select (extract(epoch from clock_timestamp()) * 1000)::bigint"
    } else {
        "select cast(unix_timestamp(utc_timestamp(3)) * 1000 as signed)"
    };
    for ahead in [0, 3_600_000, -90_500, 0] {
        server.set_clock(ahead);
        let told = number(&mut connection, query).await;
        #[expect(
            clippy::disallowed_methods,
            reason = "the host's clock is what the server's is compared with"
        )]
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let off = told - ahead - i64::try_from(now).unwrap();
        assert!(off.abs() < 1_000, "{ahead} ms ahead, but {off} ms off");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_postgres_can_be_stepped() {
    clock(Server::postgres(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_mariadb_can_be_stepped() {
    clock(Server::mariadb(false)).await;
}

/// One server through all its faults, as starting one is what costs.
async fn faults(mut server: Server) {
    let url = server.database("faults");
    let mut connection = connect(&url).await;
    execute(&mut connection, "create table t (id bigint)").await.unwrap();
    execute(&mut connection, "insert into t values (7)").await.unwrap();

    server.set_read_only(true);
    execute(&mut connection, "insert into t values (8)").await.unwrap_err();
    server.set_read_only(false);
    execute(&mut connection, "insert into t values (8)").await.unwrap();

    server.freeze();
    {
        let mut answer = Box::pin(number(&mut connection, "select count(*) from t"));
        timeout(Duration::from_millis(300), &mut answer).await.expect_err("a frozen server answered");
        server.thaw();
        assert_eq!(timeout(Duration::from_secs(30), answer).await.expect("no answer after the thaw"), 2);
    }

    server.freeze();
    let before = server.pid();
    server.kill9();
    execute(&mut connection, "select 1").await.unwrap_err();
    server.restart();
    assert_ne!(server.pid(), before);
    let mut connection = connect(&url).await;
    assert_eq!(number(&mut connection, "select count(*) from t").await, 2);

    server.stop();
    AnyConnection::connect(&url).await.expect_err("a stopped server let someone in");
    server.restart();
    assert_eq!(number(&mut connect(&url).await, "select count(*) from t").await, 2);

    let home = server.home().to_owned();
    drop(server);
    assert!(!home.exists());
}

#[tokio::test]
async fn postgres_can_be_killed_frozen_and_read_only() {
    faults(Server::postgres(true)).await;
}

#[tokio::test]
async fn mariadb_can_be_killed_frozen_and_read_only() {
    faults(Server::mariadb(true)).await;
}

#[tokio::test]
async fn mariadb_can_be_latin1() {
    let server = Server::mariadb_with(false, &["--character-set-server=latin1"]);
    let mut connection = connect(&server.database("latin")).await;
    let query = "select count(*) from information_schema.schemata
                 where schema_name = 'latin' and default_character_set_name = 'latin1'";
    assert_eq!(number(&mut connection, query).await, 1);
}

#[tokio::test]
async fn a_promoted_standby_has_what_was_committed() {
    let mut pair = Pair::start();
    let (primary, standby) = pair.database("pair");
    let mut connection = connect(&primary).await;
    execute(&mut connection, "create table t (id bigint)").await.unwrap();
    execute(&mut connection, "insert into t values (7)").await.unwrap();
    pair.primary.kill9();

    let mut connection = connect(&standby).await;
    execute(&mut connection, "insert into t values (8)").await.unwrap_err();
    pair.promote();
    execute(&mut connection, "insert into t values (8)").await.unwrap();
    assert_eq!(number(&mut connection, "select count(*) from t").await, 2);
}

#[tokio::test]
async fn a_galera_cluster_goes_on_without_a_node_and_takes_it_back() {
    let mut cluster = Galera::start();
    let [first, second, third] = cluster.database("galera");
    let mut connection = connect(&first).await;
    execute(&mut connection, "create table t (id bigint primary key)").await.unwrap();
    cluster.nodes[0].kill9();
    cluster.wait_for_members(2);

    execute(&mut connect(&second).await, "insert into t values (7)").await.unwrap();
    cluster.nodes[0].restart();
    cluster.wait_for_members(3);
    for url in [first, third] {
        let mut connection = connect(&url).await;
        execute(&mut connection, "set session wsrep_sync_wait = 1").await.unwrap();
        assert_eq!(number(&mut connection, "select count(*) from t").await, 1);
    }
}

const ROLE: &str = "PERMITQ_TEST_OWNER";

/// This test again, in a process of its own that owns servers: `exit` ends with a test, `stay` waits to be killed.
fn owner(role: &str) -> (Child, impl Sized, Vec<(String, PathBuf)>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "servers::servers_end_with_their_owner", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let servers = lines
        .by_ref()
        .filter_map(|line| {
            let (pid, home) = line.strip_prefix("server ")?.split_once(' ')?;
            Some((pid.to_owned(), PathBuf::from(home)))
        })
        .take(2)
        .collect();
    (child, lines, servers)
}

#[test]
fn servers_end_with_their_owner() {
    match env::var(ROLE).as_deref() {
        Ok(role) => {
            // Threads that end, as those of tests do: the servers must stay.
            for shared in [postgres, mariadb] {
                thread::spawn(shared).join().unwrap();
            }
            for server in [postgres(), mariadb()] {
                server.execute("select 1");
                println!("server {} {}", server.pid().as_raw_nonzero(), server.home().display());
            }
            if role == "stay" {
                thread::sleep(Duration::MAX);
            }
        }
        Err(_) => {
            for role in ["stay", "exit"] {
                let (mut child, _open, servers) = owner(role);
                assert_eq!(servers.len(), 2);
                if role == "stay" {
                    assert!(servers.iter().all(|(pid, home)| home.exists() && runs(pid)));
                    child.kill().unwrap();
                }
                assert_eq!(child.wait().unwrap().success(), role == "exit");
                for (pid, home) in servers {
                    until("the janitor", || !runs(&pid) && !home.exists());
                }
            }
        }
    }
}

/// A zombie does not: it has no working directory.
fn runs(pid: &str) -> bool {
    Path::new("/proc").join(pid).join("cwd").metadata().is_ok()
}
