//! TLS to the database and to the downstream, with an authority of one's own: who is let in, and what the others are told.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use loadtest::servers::Server;
use loadtest::tls::{Authority, EXPIRED, Front, VALID};
use permitq::downstream::stub::StubOptions;
use permitq::model::{NewTask, State};
use tokio::task::block_in_place;

use super::Bench;
use crate::support::Db;
use crate::support::site::Site;

/// How a URL asks for TLS.
struct Words {
    off: &'static str,
    on: &'static str,
    ca: &'static str,
    name: &'static str,
    file: &'static str,
}

const POSTGRES: Words = Words {
    off: "sslmode=disable",
    on: "sslmode=require",
    ca: "sslmode=verify-ca",
    name: "sslmode=verify-full",
    file: "sslrootcert",
};
const MARIADB: Words = Words {
    off: "ssl-mode=DISABLED",
    on: "ssl-mode=REQUIRED",
    ca: "ssl-mode=VERIFY_CA",
    name: "ssl-mode=VERIFY_IDENTITY",
    file: "ssl-ca",
};

/// PostgreSQL lets nobody but its superuser in without TLS.
fn insist(server: &mut Server, words: &Words) {
    if words.file == POSTGRES.file {
        server.set_hba("host all postgres 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 trust\n");
    } else {
        server.add_options(&["--require-secure-transport=ON"]);
    }
}

async fn the_database_is_known_by_its_authority(mut server: Server, words: Words) {
    let bench = Bench::new();
    let mut db = Db::alone_on(&server).await;
    let (plain, words) = (db.url().to_owned(), &words);
    let (ours, other) = (Authority::new(), Authority::new());
    let url = |query: &str, ca: Option<&Path>| match ca {
        Some(ca) => format!("{plain}?{query}&{}={}", words.file, ca.display()),
        None => format!("{plain}?{query}"),
    };
    let (file, other_file) = (ours.file(), other.file());
    let ours_is = |query: &str| url(query, Some(&file));
    let other_is = |query: &str| url(query, Some(&other_file));
    let refused = |url: &str, said: &[&str]| block_in_place(|| bench.refused(url, &["tasks"], said));
    let taken = |url: &str| drop(block_in_place(|| bench.at(url, &["tasks"])).ok());

    // A server without TLS is never spoken to in the open where TLS was asked for.
    for query in [words.on, words.ca, words.name] {
        refused(&url(query, None), &["switch TLS on at the server, or off in the URL"]);
    }
    block_in_place(|| {
        server.certify(&ours.sign("right", "IP:127.0.0.1", VALID));
        insist(&mut server, words);
    });
    refused(&url(words.off, None), &[&format!("?{}", words.on)]);
    taken(&url(words.on, None));
    for query in [words.ca, words.name] {
        taken(&ours_is(query));
        // Of the same name, so that only its signature tells it from ours.
        refused(&other_is(query), &["BadSignature", "name the CA", words.file]);
        refused(&url(query, None), &["UnknownIssuer", "name the CA", words.file]);
    }
    refused(&ours_is(words.name).replace("ca.crt", "none.crt"), &["No such file", "none.crt"]);

    // Every connection of a consumer asks for it: the loop, the heart, upkeep and the listener.
    db.reopen().await;
    let site = Site::new(db, 4).await;
    let task = site.enqueue(1, Duration::ZERO).await[0];
    let strict = ours_is(words.name);
    let consumer = site.start_with(&["run"], &[("PERMITQ_DATABASE__URL", &strict)]);
    site.state(task, State::Succeeded).await;
    drop(consumer);

    block_in_place(|| server.certify(&ours.sign("stranger", "DNS:queue.example", VALID)));
    refused(&strict, &["127.0.0.1", "name the host in the URL as the server's certificate does"]);
    // It was told to look at the authority alone.
    taken(&strict.replace(words.name, words.ca));
    block_in_place(|| server.certify(&ours.sign("old", "IP:127.0.0.1", EXPIRED)));
    refused(&strict, &["xpired", "renew the server's certificate"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_known_by_its_authority() {
    let server = block_in_place(|| Server::postgres(false));
    the_database_is_known_by_its_authority(server, POSTGRES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_is_known_by_its_authority() {
    let server = block_in_place(|| Server::mariadb(false));
    the_database_is_known_by_its_authority(server, MARIADB).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_downstream_is_known_by_its_authority() {
    let (ours, other) = (Authority::new(), Authority::new());
    let stub = StubOptions { limit: Some(4), ..StubOptions::default() };
    let site = Site::with(Db::sqlite().await.migrated().await, stub, "").await;
    let plain: SocketAddr = site.stub.url()["http://".len()..].trim_end_matches("/call").parse().unwrap();
    let right = Front::start(plain, &ours.sign("right", "IP:127.0.0.1", VALID)).await.unwrap();
    let stranger = Front::start(plain, &ours.sign("stranger", "DNS:calls.example", VALID)).await.unwrap();
    let old = Front::start(plain, &ours.sign("old", "IP:127.0.0.1", EXPIRED)).await.unwrap();
    let (file, other_file) = (ours.file(), other.file());
    for (server, ca, said) in [
        (right.address(), Some(&file), ""),
        (right.address(), Some(&other_file), "BadSignature; name the CA that signed it: ca_file"),
        (right.address(), None, "UnknownIssuer; name the CA that signed it: ca_file"),
        (stranger.address(), Some(&file), "not valid for name"),
        (old.address(), Some(&file), "xpired"),
        (plain, Some(&file), "does it speak TLS at this port?"),
    ] {
        let calls = site.stub.summary().calls;
        let url = format!("https://{server}/call");
        let mut settings = vec![("PERMITQ_DOWNSTREAM__DEFAULT__URL", url.as_str())];
        settings.extend(ca.map(|file| ("PERMITQ_DOWNSTREAM__DEFAULT__CA_FILE", file.to_str().unwrap())));
        let task = NewTask { max_attempts: Some(1), ..NewTask::new("call", "{}") };
        let task = site.db.enqueue_one(task).await;
        let consumer = site.start_with(&["run"], &settings);
        if said.is_empty() {
            site.state(task, State::Succeeded).await;
            assert_eq!(site.stub.summary().calls, calls + 1);
        } else {
            site.state(task, State::Failed).await;
            let error = site.db.task(task).await.error.unwrap();
            assert!(error.contains(said), "{server} {ca:?}: {error}");
            assert_eq!(site.stub.summary().calls, calls, "nothing was sent");
        }
        drop(consumer);
    }
}

#[test]
fn a_ca_file_that_is_none_is_refused_at_the_start() {
    let bench = Bench::migrated();
    bench.write("empty.pem", "");
    for (url, file, said) in [
        ("https://127.0.0.1:9/call", "none.pem", "cannot be read"),
        ("https://127.0.0.1:9/call", "empty.pem", "holds no certificate"),
        ("http://127.0.0.1:9/call", "empty.pem", "nothing is encrypted or checked"),
    ] {
        bench.write("permitq.toml", &format!("[downstream.default]\nurl = {url:?}\nca_file = {file:?}\n"));
        bench.run(&["run"]).fails(2, &["downstream.default", "ca_file", said]);
    }
}
