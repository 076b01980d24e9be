use permitq::clock::Clock;
use permitq::consumer::*;
use permitq::downstream::{Http, HttpOptions, stub};
use permitq::model::*;
use permitq::store::*;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight() {
    let _ = tracing_subscriber::fmt().with_env_filter("warn").try_init();
    let dir = tempfile::tempdir().unwrap();
    let db = Database::new(&format!("sqlite://{}", dir.path().join("a.db").display())).unwrap().create();
    let mut s = db.store();
    s.migrate().await.unwrap();
    let stub = stub::start(stub::StubOptions { limit: Some(4), default_ms: 100, ..Default::default() })
        .await
        .unwrap();
    let tasks: Vec<_> = (0..200).map(|i| NewTask::new("a", format!("{{\"n\":{i}}}"))).collect();
    s.enqueue(&tasks).await.unwrap();
    let (trigger, shutdown) = permitq::shutdown::channel();
    let mut set = tokio::task::JoinSet::new();
    let t0 = tokio::time::Instant::now();
    for i in 0..8 {
        let limits = Limits { call_timeout: Duration::from_secs(5), ..Limits::default() };
        let http = Http::new(HttpOptions {
            url: format!("http://{}/call", stub.addr),
            read_timeout: Duration::from_secs(5),
            ..Default::default()
        })
        .unwrap();
        let mut services = Services::default();
        services.add_rest(Service { semaphore: "default".into(), limits, handler: Arc::new(http) });
        let c = Consumer {
            database: db.clone(),
            services,
            options: Options { name: format!("c{i}"), ..Default::default() },
            clock: Clock::default(),
        };
        set.spawn(c.run(shutdown.clone()));
    }
    loop {
        let st = s.states(None).await.unwrap();
        if st == vec![(State::Succeeded, 200)] {
            break;
        }
        assert!(t0.elapsed() < Duration::from_secs(60), "{st:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("took {:?}, ideal 5s", t0.elapsed());
    trigger.advance();
    while let Some(x) = set.join_next().await {
        println!("{:?}", x.unwrap());
    }
    println!("{:?} {:?}", s.semaphores().await.unwrap(), s.peak("default", 0).await.unwrap());
    let sum = stub.summary();
    println!("{} max {} over {} dup {}", sum.calls, sum.max_in_flight, sum.overruns, sum.duplicates);
    println!("{:?}", s.consumers().await.unwrap());
}
