//! Secrets stand everywhere that the configuration allows, everything goes wrong, and none is seen again: not in what is
//! printed or logged, not on a command line, not in a table.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use loadtest::servers::Server;
use loadtest::servers::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::Bench;
use super::refused::Hand;

/// Part of every secret. It survives every way of writing it down but base64: see [`forms`].
const CORE: &str = "zq7kxWq3ptJv";

/// A secret of this name, with what has to be encoded or escaped somewhere.
fn secret(name: &str) -> String {
    format!("{CORE}-{name}\"/%+~\\")
}

/// As it stands in a URL.
fn encoded(name: &str) -> String {
    percent(&secret(name))
}

/// Every byte as `%XX`.
fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat()
}

/// What a secret may look like: plain, escaped and percent-encoded it has its core, unless every letter was encoded; and
/// in base64 it stands in one of three ways, its ends mixed with its neighbours.
fn forms() -> Vec<String> {
    let mut forms = vec![CORE.to_owned(), percent(CORE)];
    forms.extend((0..3).map(|before| {
        let text = [&b"xx"[..before], CORE.as_bytes()].concat();
        base64(&text).chars().skip(4 * usize::from(before > 0)).take(12).collect()
    }));
    forms
}

/// Whole groups only.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[bits >> shift & 63]))
    };
    bytes.chunks_exact(3).flat_map(group).collect()
}

#[track_caller]
fn hides(what: &str, text: &str) {
    for form in forms() {
        let at = text.find(&form);
        let from = text.floor_char_boundary(at.unwrap_or_default().saturating_sub(200));
        let to = text.ceil_char_boundary(text.len().min(at.unwrap_or_default() + 100));
        assert!(at.is_none(), "{what}: {form} in …{}…", &text[from..to]);
    }
}

impl Bench {
    /// Every command that reads the configuration, for people and for machines, at the most talkative.
    fn all_commands_hide(&self, env: &[(&str, &str)]) {
        for args in [
            &["config", "show"][..],
            &["doctor"],
            &["migrate"],
            &["tasks"],
            &["task", "show", "1"],
            &["permits", "set", "3"],
            &["audit"],
            &["enqueue", "--kind", "a"],
            &["run"],
        ] {
            for json in [&[][..], &["--json"]] {
                let args = [args, json].concat();
                let mut command = self.talkative(&args, if json.is_empty() { "human" } else { "json" });
                command.envs(env.iter().copied());
                let output = bounded(&command).output().unwrap();
                assert_ne!(output.status.code(), Some(124), "{args:?} goes on");
                assert!(!output.status.success() || !args.contains(&"run"), "{args:?} ran");
                for said in [&output.stdout, &output.stderr] {
                    hides(&format!("{args:?}"), &String::from_utf8_lossy(said));
                }
            }
        }
    }

    fn talkative(&self, args: &[&str], format: &str) -> Command {
        let mut command = self.command(args);
        command.env("PERMITQ_LOG", "trace").env("PERMITQ_LOG__FORMAT", format).env("RUST_BACKTRACE", "full");
        command.stdin(Stdio::null());
        command
    }
}

/// The same, ended after a minute: nothing here is right enough to go on.
fn bounded(command: &Command) -> Command {
    let mut bounded = Command::new("/usr/bin/timeout");
    bounded.arg("60").arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    bounded.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bounded.current_dir(command.get_current_dir().unwrap());
    bounded
}

/// A port that nobody listens at.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_base64_of_a_secret_is_found() {
    for before in ["", "u:", "user", "user:"] {
        let text = base64(format!("{before}{}--", secret("a")).as_bytes());
        assert!(forms().iter().any(|form| text.contains(form)), "{text}");
    }
}

#[test]
fn configurations_that_are_wrong_show_none() {
    let bench = Bench::new();
    let (one, two) = (encoded("one"), encoded("two"));
    let plain = secret("plain");
    bench.write("held", &secret("file"));
    let (password, token) = (secret("pgpassword"), secret("token"));
    let here = nobody();
    let url = format!("postgres://u:{one}@{here}/db");
    let env = [("PGPASSWORD", password.as_str()), ("TOKEN", &token), ("URL", &url)];
    for file in [
        // Nobody answers; a list; another product; TLS; a parameter that is none; what is no URL.
        format!("[database]\nurl = \"postgres://u:{one}@{here}/db\""),
        format!("[database]\nurl = \"postgres://{here}/db?user=u&password={one}&sslmode=verify-full\""),
        format!("[database]\nurl = [\"postgres://u:{one}@{here}/db\", \"postgres://u:{two}@{here}/db\"]"),
        format!("[database]\nurl = [\"mysql://u:{one}@{here}/db\", \"mysql://u:{two}@{here}/db\"]"),
        format!("[database]\nurl = [\"mysql://u:{one}@{here}/db\", \"postgres://u:{two}@{here}/db\"]"),
        format!("[database]\nurl = \"postgres://u@{here}/db?sslpassword={one}&sslmode=require\""),
        format!("[database]\nurl = \"mysql://u@{here}/db?password={one}\""),
        format!("[database]\nurl = \"oracle://u:{one}@{here}/db\""),
        format!("[database]\nurl = \"postgres://u:{one}@{here}x/db\""),
        format!("[database]\nurl = \"postgres://u:{CORE}@{here}/db?{CORE}\""),
        format!("[database]\nurl = \"postgres://{CORE}:{CORE}\""),
        format!("[database]\nurl = \"u:{CORE}@{here}\""),
        format!("[database]\nurl = \"env:{CORE} {CORE}\""),
        "[database]\nurl = \"file:held\"".to_owned(),
        // Keys that are none beside and around secrets; lines that are no TOML.
        format!(
            "[database]\nurl = \"mysql://u:{one}@{here}/db\"\npasswrd = \"{CORE}\"\n[datbase]\nurl = \"{CORE}\""
        ),
        format!("[database]\nurl = \"postgres://u:{CORE}@{here}/db"),
        format!("[database]\nurl = {CORE}"),
        format!("[database]\nurl = {{ password = \"{CORE}\" }}"),
        format!("[downstream.default]\nurl = \"http://{here}\"\nheaders = {{ Authorization = {CORE} }}"),
        format!("[downstream.default]\nurl = \"http://{here}\"\nheaders = \"{CORE}\""),
        format!("[downstream.default]\nurl = \"http://{here}\"\nheaderz = {{ Authorization = \"{CORE}\" }}"),
        format!(
            "[downstream.default]\nurl = \"http://{here}\"\n[downstream.default.headers]\nCookie = \"{CORE}\\r\\nX: 1\""
        ),
        format!(
            "[downstream.default]\nurl = \"http://{here}\"\n[downstream.default.headers]\n\"X Y\" = \"{CORE}\"\nHost = \"{CORE}\"\nIdempotency-Key = \"{CORE}\""
        ),
        format!("[downstream.default]\nurl = \"http://u:{CORE}@{here}/\""),
        format!("[downstream.default]\nurl = \"ftp://{here}/?token={CORE}\""),
        // A downstream that is right, and a database that is not.
        format!(
            "[database]\nurl = \"env:URL\"\n[downstream.default]\nurl = \"http://{here}/call?token={one}&code={two}\"\n[downstream.default.headers]\n\
             Authorization = '{plain}'\nX-Whatever = '{plain}'\nX-Env = \"env:TOKEN\"\nX-File = \"file:held\""
        ),
    ] {
        bench.write("permitq.toml", &file);
        bench.all_commands_hide(&env);
    }
    bench.write("permitq.toml", "");
    for name in ["DATABASE_URL", "PERMITQ_DATABASE_URL", "PERMITQ_DATABASE__URL"] {
        let url = format!("postgres://u:{one}@{here}/db?passfile={two},mysql://{CORE}@{here}");
        bench.all_commands_hide(&[(name, &url)]);
    }
    // A URL in the wrong place of the command line is repeated in the answer, as every wrong word is.
    let url = format!("postgres://u:{CORE}@{here}/db?password={CORE}");
    for args in [&["tasks", &url][..], &["--databas", &url, "tasks"], &["tasks", &format!("--databas={url}")]]
    {
        let ran = bench.run(args).fails(2, &["error"]);
        hides(&format!("{args:?}"), &ran.err);
    }
}

/// A downstream that says back, in every way it can think of, what it was told. It refuses odd calls and accepts even ones.
fn parrot() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let _hung_up = repeat(stream.unwrap(), number);
        }
    });
    address
}

fn repeat(mut stream: TcpStream, number: usize) -> std::io::Result<()> {
    let (mut request, mut bytes) = (String::new(), [0; 4096]);
    while !request.contains("\r\n\r\n") {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            n => request.push_str(&String::from_utf8_lossy(&bytes[..n])),
        }
    }
    let status = if number.is_multiple_of(2) { "401 Unauthorized" } else { "200 OK" };
    let body = format!("{} {request}", json!(request));
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nX-Heard: {}", body.len(), secret("header"));
    write!(stream, "{head}\r\n\r\n{body}")
}

/// Every row of every table, as text.
fn rows(hand: &mut Hand, postgres: bool) -> String {
    let (schema, cast, quote) =
        if postgres { ("'public'", "text", '"') } else { ("database()", "CHAR", '`') };
    let tables = hand.texts(&format!(
        "SELECT CAST(table_name AS {cast}) FROM information_schema.tables
          WHERE table_schema = {schema} AND table_type = 'BASE TABLE'"
    ));
    assert!(tables.len() >= 8, "{tables:?}");
    let mut all = String::new();
    for table in tables {
        for column in hand.texts(&format!(
            "SELECT CAST(column_name AS {cast}) FROM information_schema.columns
              WHERE table_schema = {schema} AND table_name = '{table}'"
        )) {
            let column = format!("{quote}{column}{quote}");
            let query = format!("SELECT coalesce(CAST({column} AS {cast}), '') FROM {quote}{table}{quote}");
            all.extend(hand.texts(&query).into_iter().map(|text| text + "\n"));
        }
    }
    all
}

/// Command lines of this process and its children.
fn command_lines(process: &Child) -> String {
    let pid = process.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let pids = children.split_whitespace().map(str::to_owned).chain([pid.to_string()]);
    pids.map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()).collect()
}

struct Running(Child, PathBuf);

impl Running {
    fn log(&self) -> String {
        std::fs::read_to_string(&self.1).unwrap()
    }

    fn end(mut self, signal: Signal) -> String {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap();
        self.log()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn a_fleet_at_work_shows_none(mut server: Server, postgres: bool) {
    let bench = Bench::new();
    let (name, right, wrong) = ("secrets", secret("database"), encoded("wrong"));
    let url = server.database(name);
    let user = |password: &str| url.replacen("permitq@", &format!("permitq:{password}@"), 1);
    let admin = server.admin_url().rsplit_once('/').unwrap().0.to_owned() + "/" + name;
    let change = |password: &str| {
        let password = password.replace('\\', if postgres { "\\" } else { "\\\\" });
        if postgres {
            format!("ALTER ROLE permitq PASSWORD '{password}'")
        } else {
            format!("ALTER USER permitq@'127.0.0.1' IDENTIFIED BY '{password}'")
        }
    };
    server.execute(change(&right));
    if postgres {
        server.set_hba("host all postgres 127.0.0.1/32 trust\nhost all permitq 127.0.0.1/32 scram-sha-256\n");
    }
    bench.write("held", &secret("file"));
    bench.write("url", &user(&encoded("database")));
    let config = format!(
        "[database]\nurl = \"file:url\"\nstatement_timeout = \"8s\"\n\
         [lease]\nduration = \"8s\"\nheartbeat = \"500ms\"\nreclaim = \"500ms\"\n[retry]\nbackoff = \"10ms\"\n\
         [downstream.parrot]\nurl = \"http://{}/call?token={}\"\n\
         [downstream.parrot.headers]\nAuthorization = 'Bearer {}'\nCookie = '{}'\nX-Env = \"env:TOKEN\"\nX-File = \"file:held\"\n\
         [downstream.closed]\nurl = \"http://{}/call?token={}\"\nheaders = {{ Authorization = '{}' }}\n",
        parrot(),
        encoded("query"),
        secret("bearer"),
        secret("cookie"),
        nobody(),
        encoded("query"),
        secret("closed"),
    );
    bench.write("permitq.toml", &config);
    bench.run(&["migrate"]).ok();
    for kind in ["parrot", "parrot", "closed"] {
        bench.run(&["enqueue", "--kind", kind, "--max-attempts", "2"]).ok();
    }
    for (format, args) in
        [("human", &["run"][..]), ("json", &["run"]), ("human", &["fleet", "--consumers", "2"])]
    {
        let log = bench.path(&format!("{format}-{}.log", args[0]));
        let mut command = bench.talkative(args, format);
        command.env("TOKEN", secret("token")).stdout(Stdio::null());
        if args[0] == "fleet" {
            // The parent's own command line is what somebody typed; nobody types it for the children.
            command.args(["--database", "env:URL"]).env("URL", user(&encoded("database")));
        }
        let stderr = std::fs::File::create(&log).unwrap();
        let running = Running(command.stderr(stderr).spawn().unwrap(), log);
        let settled = || {
            let tasks = bench.run(&["tasks", "--json"]).ok().value();
            let mut tasks = tasks["tasks"].as_array().unwrap().iter();
            tasks.all(|task| task["state"] == "succeeded" || !task["error"].is_null())
        };
        until("every task done or refused", settled);
        until("a consumer", || running.log().contains("registered"));
        hides("a command line", &command_lines(&running.0));

        // The password changes under its feet, and every connection is lost.
        server.execute(change(&secret("changed")));
        server.restart();
        until("trouble", || running.log().contains("trouble"));
        let more = running.log().len() + 2000;
        until("more trouble", || running.log().len() > more);
        server.execute(change(&right));
        hides(&format!("the log of {args:?}"), &running.end(Signal::ABORT));
        for id in ["1", "2", "3"] {
            bench.run(&["task", "retry", id]);
        }
    }
    let said = bench.run(&["task", "show", "1"]).ok().out;
    assert!(said.contains("authorization: ***") && said.contains("?token=***"), "{said}");
    hides("a table", &rows(&mut Hand::of(&admin), postgres));
    let off = if postgres { "?sslmode=require" } else { "?ssl-mode=REQUIRED" };
    for url in [user(&wrong), user(&encoded("database")) + off, user(&wrong).replace(name, "nothere")] {
        bench.write("url", &url);
        bench.all_commands_hide(&[("TOKEN", &secret("token"))]);
    }
}

#[test]
fn a_fleet_on_postgres_shows_none() {
    a_fleet_at_work_shows_none(Server::postgres(false), true);
}

#[test]
fn a_fleet_on_mariadb_shows_none() {
    a_fleet_at_work_shows_none(Server::mariadb(false), false);
}
