use permitq::clock::Clock;
use permitq::model::*;
use permitq::store::*;
use std::time::Duration;

#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::new(&format!("sqlite://{}", dir.path().join("a b.db").display())).unwrap().create();
    let mut s = db.store();
    println!("{:?}", s.schema().await);
    println!("{:?}", s.migrate().await.unwrap());
    println!("{:?}", s.migrate().await.unwrap());
    println!("{:?}", s.schema().await.unwrap());
    let t = [
        NewTask::new("a", r#"{"x":"😀"}"#),
        NewTask::new("a", "").key("k"),
        NewTask::new("b", "1").key("k"),
        NewTask { run_at: RunAt::In(Duration::from_secs(100)), ..NewTask::new("b", "1") },
    ];
    println!("{:?}", s.enqueue(&t).await.unwrap());
    println!("{:?}", s.enqueue(&t[1..2]).await.unwrap());
    println!(
        "{:?}",
        s.enqueue(&[NewTask { semaphore: Some("no".into()), ..NewTask::new("b", "1") }]).await.unwrap_err()
    );
    println!("{:?}", s.look(&["default".into()]).await.unwrap());
    let reg = Registration {
        id: "c1".into(),
        name: "c".into(),
        host: "h".into(),
        pid: 1,
        slots: 4,
        serves: "{}".into(),
        lease: Duration::from_secs(60),
    };
    s.register(&reg).await.unwrap();
    let clock = Clock::default();
    let pol = [Policy {
        kind: "a".into(),
        hold: Duration::from_secs(10),
        max_attempts: 3,
        on_abandon: OnAbandon::Retry,
    }];
    let x = Exchange {
        consumer: "c1",
        semaphore: "default",
        ended: &[],
        want: 3,
        policies: &pol,
        sent: clock.now(),
    };
    let got = s.exchange(&x).await.unwrap();
    println!("{got:?}");
    println!("{:?}", s.semaphores().await.unwrap());
    println!("{:?}", s.holders().await.unwrap());
    println!("{:?}", s.beat("c1", Duration::from_secs(5)).await.unwrap());
    println!("{:?}", s.running("c1").await.unwrap());
    let mut ended: Vec<_> = vec![];
    for (i, c) in got.claims.into_iter().enumerate() {
        let o = if i == 0 {
            Outcome::succeeded("ok".to_string()).with_status(200)
        } else {
            Outcome::unclear(Why::Timeout, "late")
        };
        ended.push(c.end(&o, Some(clock.now()), &Retry::default(), 0.5));
    }
    let x = Exchange {
        consumer: "c1",
        semaphore: "default",
        ended: &ended,
        want: 1,
        policies: &pol,
        sent: clock.now(),
    };
    println!("{:?}", s.exchange(&x).await.unwrap());
    println!("{:?}", s.exchange(&x).await.unwrap());
    println!("{:?}", s.semaphores().await.unwrap());
    for id in 1..4 {
        println!("{:?}", s.task(id).await.unwrap());
        println!("{:?}", s.attempts(id).await.unwrap());
    }
    println!("{:?}", s.late("c1", ended[1].attempt, Some(200), "late ok", true).await.unwrap());
    println!("{:?}", s.semaphores().await.unwrap());
    println!("{:?}", s.peak("default", 0).await.unwrap());
    println!("{:?}", s.audit().await.unwrap());
    println!("{:?}", s.tasks(&Filter { kind: Some("a".into()), ..Filter::default() }, 10).await.unwrap());
    println!("{:?}", s.states(None).await.unwrap());
    println!("{:?}", s.cancel(3, "me").await.unwrap());
    println!("{:?}", s.retry(3, "me").await.unwrap());
    println!("{:?}", s.actions(3).await.unwrap());
    println!("{:?}", s.repair("default", Duration::from_secs(5)).await.unwrap());
    println!("{:?}", s.set_max("default", 9, "me").await.unwrap());
    println!("{:?}", s.expired().await.unwrap());
    println!("{:?}", s.reclaim("r", Duration::from_secs(5), 0, 10).await.unwrap());
    println!("{:?}", s.end_coolings("default", 10).await.unwrap());
    println!("{:?}", s.consumers().await.unwrap());
    println!("{:?} {:?}", s.clock().await.unwrap(), s.longest_hold("default").await.unwrap());
    s.leave("c1", Left::Gone).await.unwrap();
    println!("{:?}", s.beat("c1", Duration::from_secs(5)).await.unwrap());
    println!("{:?}", s.promote(5).await.unwrap());
    println!("{:?}", s.retire_consumers(Duration::ZERO).await.unwrap());
}
