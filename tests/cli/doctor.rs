//! What `permitq doctor` finds on real servers, and what `config show` shows.

use loadtest::servers::{self, Server};
use serde_json::Value;

use super::refused::{Hand, user};
use super::{Bench, Ran, consumer};

impl Bench {
    fn doctor(&self, url: &str) -> Ran {
        self.run(&["doctor", "--json", "--database", url])
    }
}

/// The level, what was found and the remedy of one check.
fn found<'a>(report: &'a Value, name: &str) -> (&'a str, &'a str, &'a str) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    let text = |key: &str| check[key].as_str().unwrap_or_default();
    (text("level"), text("found"), text("remedy"))
}

fn problems(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["level"] == "problem").map(|check| check["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_file_that_is_well() {
    let bench = Bench::migrated();
    let report = bench.run(&["doctor", "--json"]).ok().value();
    assert_eq!((&report["ok"], problems(&report)), (&true.into(), vec![]), "{report}");
    assert_eq!(found(&report, "consumers").0, "warning", "nobody works here yet");
    assert_eq!(found(&report, "durability").0, "ok");
    bench.store().register(&consumer()).await.unwrap();
    let report = bench.run(&["doctor", "--json"]).ok().value();
    assert_eq!(found(&report, "slots"), ("ok", "default: 4 slots for 4 permits", ""));
    bench.run(&["doctor"]).ok().shows(&["level", "durability", "1 alive"]);

    bench
        .sql("DROP INDEX permitq_task_ready; UPDATE permitq_semaphore SET in_use = 2, max_permits = 9")
        .await;
    let ran = bench.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = ran.value();
    assert_eq!(problems(&report), ["tables and indexes"]);
    assert!(found(&report, "tables and indexes").1.contains("index permitq_task_ready"), "{report}");
    assert_eq!((found(&report, "counters").0, found(&report, "slots").0), ("warning", "warning"));
    let ran = bench.run(&["doctor"]);
    assert_eq!(ran.code, Some(1));
    ran.shows(&["what to do", "counters: look again"]);
}

#[test]
fn what_stands_in_the_way_of_looking_further() {
    let bench = Bench::new();
    let ran = bench.run(&["doctor", "--json"]);
    assert_eq!((ran.code, problems(&ran.value())), (Some(1), vec!["connection"]));
    assert!(!bench.path("permitq.db").exists());
    bench.write("permitq.db", "");
    let ran = bench.run(&["doctor", "--json"]);
    assert_eq!(problems(&ran.value()), ["schema"]);
    assert!(found(&ran.value(), "schema").1.contains("permitq migrate"));
    bench.write("permitq.toml", "[lease]\nduration = \"1s\"\n[consumer]\nslotz = 4\n");
    let ran = bench.run(&["doctor", "--json"]);
    assert_eq!((ran.code, problems(&ran.value())), (Some(1), vec!["configuration"]));
    assert!(found(&ran.value(), "configuration").1.contains("slotz"), "{ran:?}");
}

#[test]
fn durable_servers_are_well_and_others_are_not() {
    let bench = Bench::new();
    for (durable, fast) in
        [(Server::postgres(true), servers::postgres()), (Server::mariadb(true), servers::mariadb())]
    {
        let url = durable.database("doctor");
        bench.run(&["migrate", "--database", &url]).ok();
        let report = bench.doctor(&url).ok().value();
        assert_eq!(problems(&report), Vec::<&str>::new(), "{report}");
        for name in [
            "durability",
            "isolation",
            "statement limit",
            "pooler",
            "clock",
            "rights",
            "tables and indexes",
            "connections",
        ] {
            assert_eq!(found(&report, name).0, "ok", "{report}");
        }
        assert!(!found(&report, "tables and indexes").1.contains("not checked"), "{report}");

        let url = fast.database("doctor");
        bench.run(&["migrate", "--database", &url]).ok();
        let report = bench.doctor(&url).value();
        assert_eq!(problems(&report), ["durability"], "{report}");
        assert!(found(&report, "durability").1.contains("power loss"), "{report}");
    }
}

/// A pooler that keeps sessions apart does no harm; one that mixes them up is named, by every command that meets it.
#[test]
fn a_pooler_that_mixes_sessions_up_is_named() {
    let bench = Bench::new();
    let server = servers::postgres();
    bench.run(&["migrate", "--database", &server.database("pooled")]).ok();

    let session = server.pooler("session");
    let report = bench.doctor(&session.url("pooled")).value();
    assert_eq!(found(&report, "pooler").0, "ok", "{report}");
    bench.run(&["enqueue", "--kind", "a", "--database", &session.url("pooled")]).ok();

    for mode in ["transaction", "statement"] {
        let pooler = server.pooler(mode);
        let url = pooler.url("pooled");
        let report = bench.doctor(&url).value();
        assert_eq!(found(&report, "pooler").0, "problem", "{mode}: {report}");
        assert!(problems(&report).contains(&"pooler"), "{report}");
    }
    assert_eq!(bench.json(&["tasks", "--database", &session.url("pooled")])["tasks"][0]["kind"], "a");
}

#[test]
fn what_is_missing_is_named() {
    let bench = Bench::new();
    for (server, name, admin, drop_index, index) in [
        (
            servers::postgres(),
            "patient",
            "postgres",
            "DROP INDEX permitq_cooling_until; ALTER TABLE permitq_task DISABLE TRIGGER permitq_task_came",
            "index permitq_cooling_until, trigger permitq_task_came",
        ),
        (
            servers::mariadb(),
            "patient@'127.0.0.1'",
            "root",
            "ALTER TABLE permitq_cooling DROP KEY permitq_cooling_until; DROP TRIGGER permitq_task_came",
            "index permitq_cooling.permitq_cooling_until, trigger permitq_task_came",
        ),
    ] {
        let url = server.database("patient");
        bench.run(&["migrate", "--database", &url]).ok();
        let mut hand = Hand::of(&user(&url, admin));
        hand.execute(drop_index);
        let report = bench.doctor(&url).value();
        assert!(found(&report, "tables and indexes").1.contains(index), "{report}");

        // Exactly what sql/README.md grants is enough; one less is named.
        hand.execute(&format!("CREATE USER {name}"));
        let mut grants = vec![
            "SELECT ON permitq_schema".to_owned(),
            "SELECT, DELETE ON permitq_limit".to_owned(),
            "SELECT, UPDATE (in_use) ON permitq_semaphore".to_owned(),
            "SELECT, INSERT, DELETE ON permitq_action".to_owned(),
            "SELECT, INSERT, UPDATE ON permitq_dependency".to_owned(),
        ];
        let tables = ["task", "cooling", "attempt", "consumer", "job", "trigger", "instant", "pause"];
        grants.extend(tables.map(|table| format!("SELECT, INSERT, UPDATE, DELETE ON permitq_{table}")));
        for grant in grants {
            hand.execute(&format!("GRANT {grant} TO {name}"));
        }
        let url = user(&url, "patient");
        let report = bench.doctor(&url).value();
        assert_eq!(found(&report, "rights").0, "ok", "{report}");
        hand.execute(&format!("REVOKE DELETE ON permitq_cooling FROM {name}"));
        hand.execute(&format!("REVOKE INSERT ON permitq_action FROM {name}"));
        let report = bench.doctor(&url).value();
        let missing = "missing: DELETE on permitq_cooling, INSERT on permitq_action";
        assert_eq!(
            (found(&report, "rights").0, found(&report, "rights").1),
            ("problem", missing),
            "{report}"
        );
    }
}

#[test]
fn the_configuration_in_force_has_origins_and_no_secrets() {
    let bench = Bench::new();
    bench.write(
        "permitq.toml",
        "[consumer]\nslots = 7\n[downstream.default]\nurl = \"http://127.0.0.1:9000/call?token=hunter2\"\n\
         headers = { Authorization = \"Bearer hunter2\", X-Api = \"env:API_KEY\" }\n",
    );
    let show = |args: &[&str]| {
        let mut command = bench.command(&[&["config", "show"], args].concat());
        command.envs([("DATABASE_URL", "postgres://me:hunter2@db/q"), ("API_KEY", "hunter2")]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let shown: Value = serde_json::from_str(&show(&["--json"])).unwrap();
    let settings = shown["settings"].as_array().unwrap();
    let setting = |key: &str| {
        let one = settings.iter().find(|one| one["key"] == key).unwrap();
        (one["value"].as_str().unwrap(), one["origin"].as_str().unwrap())
    };
    assert_eq!(setting("consumer.slots"), ("7", "permitq.toml"));
    assert_eq!(setting("lease.duration"), ("2m", "default"));
    assert_eq!(setting("database.url"), ("postgres://me:***@db/q", "DATABASE_URL"));
    let human = show(&[]);
    assert!(human.contains("downstream.default.url") && human.contains("***"), "{human}");
    assert!(!human.contains("hunter2") && !shown.to_string().contains("hunter2"), "{human}");
}
