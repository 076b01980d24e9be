//! A smoke run of every operation, on SQLite and on the servers named by `PERMITQ_TEST_PG` and `PERMITQ_TEST_MARIADB`
//! (empty databases): the same calls must get the same answers.
#![allow(clippy::many_single_char_names, clippy::too_many_lines)]

use std::fmt::Debug;
use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::*;
use permitq::store::*;

/// Answers as text, without what differs from run to run.
#[derive(Default)]
struct Answers(Vec<String>);

impl Answers {
    fn push(&mut self, name: &str, answer: impl Debug) {
        let mut text = format!("{name}: ");
        let answer = format!("{answer:?}");
        let mut rest = &*answer;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            text.push_str(&rest[..at]);
            let number = rest[at..].find(|c: char| !(c.is_ascii_alphanumeric() || "-:.".contains(c)));
            let (number, after) = rest[at..].split_at(number.unwrap_or(rest.len() - at));
            text.push_str(if number.len() > 9 || number.contains('.') { "#" } else { number });
            rest = after;
        }
        text.push_str(rest);
        self.0.push(text);
    }
}

#[tokio::test]
async fn the_same_answers_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = run(&format!("sqlite://{}", dir.path().join("a b.db").display())).await;
    for name in ["PERMITQ_TEST_PG", "PERMITQ_TEST_MARIADB"] {
        let Ok(url) = std::env::var(name) else {
            println!("{name} is not set");
            continue;
        };
        let server = run(&url).await;
        for (theirs, ours) in server.iter().zip(&sqlite) {
            assert_eq!(theirs, ours, "{name}");
        }
    }
    for answer in sqlite {
        println!("{answer}");
    }
}

async fn run(url: &str) -> Vec<String> {
    let db = Database::new(url).unwrap().create();
    let mut s = db.store();
    let mut a = Answers::default();
    assert!(s.schema().await.is_err());
    // Two at once.
    let mut other = db.store();
    let (one, two) = tokio::join!(s.migrate(), other.migrate());
    assert_eq!((one.unwrap().to, two.unwrap().to), (1, 1));
    a.push("migrate", s.migrate().await.unwrap());
    assert_eq!(s.schema().await.unwrap().installation.len(), 32);
    let t = [
        NewTask::new("a", r#"{"x":"😀"}"#),
        NewTask { timeout: Some(Duration::from_millis(1500)), ..NewTask::new("a", "").key("k") },
        NewTask { run_at: RunAt::In(Duration::from_secs(100)), priority: -3, ..NewTask::new("b", "1") },
        NewTask::new("b", "1").key("k"),
    ];
    a.push("enqueue", s.enqueue(&t).await.unwrap());
    a.push("again", s.enqueue(&t[1..2]).await.unwrap());
    let wrong = NewTask { semaphore: Some("no".into()), ..NewTask::new("b", "1") };
    a.push("unknown semaphore", s.enqueue(&[wrong]).await.unwrap_err());
    for (name, wrong) in [
        ("bad payload", NewTask { payload: "{".into(), ..NewTask::new("b", "1") }),
        ("long key", NewTask::new("b", "1").key("x".repeat(300))),
        ("no attempts", NewTask { max_attempts: Some(0), ..NewTask::new("b", "1") }),
    ] {
        a.push(name, matches!(s.enqueue(&[t[0].clone(), wrong]).await, Err(Error::Refused { .. })));
    }
    a.push("look", s.look(&["default".into(), "no".into()]).await.unwrap());
    let reg = Registration {
        id: "c1".into(),
        name: "c".into(),
        host: "h".into(),
        pid: 1,
        slots: 4,
        serves: "{}".into(),
        lease: Duration::from_mins(1),
    };
    s.register(&reg).await.unwrap();
    let clock = Clock::default();
    let policies = ["a", "b"].map(|kind| Policy {
        kind: kind.into(),
        hold: Duration::from_secs(10),
        max_attempts: 3,
        on_abandon: OnAbandon::RetryAfterCooling,
    });
    let x = Exchange {
        consumer: "c1",
        semaphore: "default",
        ended: &[],
        want: 3,
        policies: &policies,
        sent: clock.now(),
    };
    let got = s.exchange(&x).await.unwrap();
    a.push(
        "claims",
        got.claims
            .iter()
            .map(|c| format!("{c:?}").split("sent").next().unwrap().to_owned())
            .collect::<Vec<_>>(),
    );
    a.push("semaphores", s.semaphores().await.unwrap());
    a.push("holders", s.holders().await.unwrap());
    a.push("beat", s.beat("c1", Duration::from_secs(5)).await.unwrap());
    a.push("running", s.running("c1").await.unwrap());
    let mut ended: Vec<_> = vec![];
    for (i, c) in got.claims.into_iter().enumerate().rev() {
        let o = if i == 0 {
            Outcome::succeeded("o\0k".to_string()).with_status(200)
        } else {
            Outcome::unclear(Why::Timeout, "late")
        };
        ended.push(c.end(&o, Some(clock.now()), &Retry::default(), 0.5));
    }
    let x = Exchange { ended: &ended, want: 1, sent: clock.now(), ..x };
    a.push("exchange", s.exchange(&x).await.unwrap());
    a.push("exchange again", s.exchange(&x).await.unwrap());
    a.push("semaphores", s.semaphores().await.unwrap());
    for id in 1..5 {
        a.push("task", s.task(id).await.unwrap());
        a.push("attempts", s.attempts(id).await.unwrap());
    }
    a.push("holders", s.holders().await.unwrap());
    a.push("longest", s.longest_hold("default").await.unwrap());
    a.push("late", s.late("c1", ended[0].attempt, Some(200), "late \0 ok", true).await.unwrap());
    a.push("late again", s.late("c1", ended[0].attempt, None, "late ok", true).await.unwrap());
    a.push("attempts", s.attempts(2).await.unwrap());
    a.push("semaphores", s.semaphores().await.unwrap());
    a.push("peak", s.peak("default", 0).await.unwrap());
    a.push("audit", s.audit().await.unwrap());
    for filter in [
        Filter::default(),
        Filter { kind: Some("a".into()), below: Some(2), ..Filter::default() },
        Filter { state: Some(State::Scheduled), semaphore: Some("default".into()), ..Filter::default() },
        Filter { biz_key: Some("k".into()), ..Filter::default() },
    ] {
        a.push("tasks", s.tasks(&filter, 10).await.unwrap());
    }
    a.push("states", {
        let mut states = s.states(None).await.unwrap();
        states.sort_by_key(|(state, _)| state.as_str());
        states
    });
    a.push("cancel", s.cancel(3, "me").await.unwrap());
    a.push("retry", s.retry(3, "me").await.unwrap());
    a.push("missing", (s.cancel(99, "me").await.unwrap(), s.retry(99, "me").await.unwrap()));
    a.push("actions", s.actions(3).await.unwrap());
    // A running task is cancelled, cools, and is retried: it waits for its cooling.
    let x = Exchange { ended: &[], want: 1, sent: clock.now(), ..x };
    let got = s.exchange(&x).await.unwrap().claims.pop().unwrap();
    a.push("claimed", got.attempt);
    a.push("cancel running", s.cancel(3, "me").await.unwrap());
    a.push("retry cooling", s.retry(3, "me").await.unwrap());
    a.push("task", s.task(3).await.unwrap());
    a.push("look", s.look(&["default".into()]).await.unwrap());
    let lost = got.end(&Outcome::succeeded(String::new()), None, &Retry::default(), 0.5);
    a.push("lost", s.exchange(&Exchange { ended: &[lost], want: 0, ..x }).await.unwrap());
    a.push("repair", s.repair("default", Duration::from_secs(5)).await.unwrap());
    a.push("repair nothing", s.repair("no", Duration::from_secs(5)).await.unwrap());
    a.push("set max", s.set_max("default", 9, "me").await.unwrap());
    a.push("set max nowhere", s.set_max("no", 9, "me").await.unwrap());
    s.add_semaphore("two", 2, "me").await.unwrap();
    a.push("add again", matches!(s.add_semaphore("two", 2, "me").await, Err(Error::Refused { .. })));
    a.push("below zero", matches!(s.set_max("two", -1, "me").await, Err(Error::Refused { .. })));
    a.push("expired", s.expired().await.unwrap());
    s.beat("c1", Duration::ZERO).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let expired = s.expired().await.unwrap();
    a.push("expired", &expired);
    a.push("fence", s.fence(&expired[0]).await.unwrap());
    a.push("fence again", s.fence(&expired[0]).await.unwrap());
    a.push("claim when gone", s.exchange(&Exchange { ended: &[], want: 2, ..x }).await.unwrap());
    a.push("beat", s.beat("c1", Duration::from_secs(5)).await.unwrap());
    // Another one claims with a short hold, and vanishes.
    s.register(&Registration { id: "c2".into(), ..reg }).await.unwrap();
    a.push("enqueue", s.enqueue(&[NewTask::new("a", "1"), NewTask::new("a", "2")]).await.unwrap().len());
    let mut short = policies.clone();
    short[0].hold = Duration::from_millis(1);
    let y = Exchange {
        consumer: "c2",
        policies: &short,
        want: 2,
        ended: &[],
        sent: clock.now(),
        semaphore: "default",
    };
    a.push("claims", s.exchange(&y).await.unwrap().claims.len());
    tokio::time::sleep(Duration::from_millis(20)).await;
    a.push("reclaim one", s.reclaim("r", Duration::ZERO, 0, 1).await.unwrap().len());
    a.push("reclaim the rest", s.reclaim("r", Duration::ZERO, 0, 10).await.unwrap().len());
    a.push("reclaim nothing", s.reclaim("r", Duration::ZERO, 0, 10).await.unwrap().len());
    a.push("end coolings", s.end_coolings("default", 10).await.unwrap());
    a.push("semaphores", s.semaphores().await.unwrap());
    a.push("consumers", s.consumers().await.unwrap());
    let before = s.clock().await.unwrap();
    assert!((before - 1_700_000_000_000_000) > 0);
    s.leave("c2", Left::Gone).await.unwrap();
    a.push("promote", s.promote(5).await.unwrap());
    a.push("retire", s.retire_consumers(Duration::ZERO).await.unwrap());
    a.push("audit", s.audit().await.unwrap());
    a.push("peak", s.peak("default", before - 3_600_000_000).await.unwrap());
    // A thousand at once, half of them known.
    let many: Vec<_> = (0..1000).map(|i| NewTask::new("m", "{}").key(format!("m{}", i % 500))).collect();
    let made = s.enqueue(&many).await.unwrap();
    a.push("thousand", (made.iter().filter(|m| m.created).count(), made[0].id == made[500].id));
    let many: Vec<_> =
        (0..1000).map(|i| if i % 2 == 0 { NewTask::new("n", "{}") } else { many[i].clone() }).collect();
    let made = s.enqueue(&many).await.unwrap();
    a.push("mixed", made.iter().filter(|m| m.created).count());
    a.push("blank", {
        let k =
            s.enqueue(&[NewTask::new("n", "{}").key("z"), NewTask::new("n", "{}").key("z ")]).await.unwrap();
        k[1].created
    });
    a.0
}
