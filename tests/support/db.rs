//! One fresh database for one test, with a person at a SQL client beside it.

use std::any::Any;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use loadtest::servers::{self, Server};
use permitq::model::{NewTask, Retention, Task};
use permitq::store::{Database, Enqueued, Left, Registration, Store};
use permitq::upkeep;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Executor, Row};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};
use tokio::time::timeout;

use super::{Consumer, dialect};

/// The lease that test consumers register with. Nothing waits for it: tests move it back instead.
pub(crate) const LEASE: Duration = Duration::from_mins(1);

/// A database of its own. Dropped with the test.
pub(crate) struct Db {
    pub(crate) database: Database,
    url: String,
    raw: String,
    hand: Mutex<AnyConnection>,
    /// For the steps below that any process may take.
    any: Mutex<Store>,
    _place: Box<dyn Any + Send + Sync>,
}

/// A transaction that somebody else holds open.
pub(crate) struct Held(AnyConnection);

impl Db {
    /// A file that goes with the test.
    pub(crate) async fn sqlite() -> Self {
        let place = TempDir::new().unwrap();
        let file = place.path().join("a queue.db");
        Self::at(
            &format!("sqlite://{}", file.display()),
            &format!("sqlite:{}?mode=rwc", file.display()),
            place,
        )
        .await
    }

    /// On the shared PostgreSQL server.
    pub(crate) async fn postgres() -> Self {
        Self::on(servers::postgres).await
    }

    /// On the shared MariaDB server.
    pub(crate) async fn mariadb() -> Self {
        Self::on(servers::mariadb).await
    }

    /// On the shared PostgreSQL server that is durable.
    pub(crate) async fn durable_postgres() -> Self {
        static SHARED: LazyLock<Server> = LazyLock::new(|| Server::postgres(true));
        Self::on(|| &SHARED).await
    }

    /// On the shared MariaDB server that is durable.
    pub(crate) async fn durable_mariadb() -> Self {
        static SHARED: LazyLock<Server> = LazyLock::new(|| Server::mariadb(true));
        Self::on(|| &SHARED).await
    }

    /// One database of several hosts, which must live for as long. Its person works on the first of them.
    #[allow(dead_code, reason = "tests/cluster uses it")]
    pub(crate) async fn of_hosts(urls: &[String]) -> Self {
        let database = Database::first_of(&urls.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        Self::of(database, &urls[0], &urls[0], ()).await
    }

    /// The first host is not the database any more: from now on the test itself works on this one alone.
    #[allow(dead_code, reason = "tests/cluster uses it")]
    pub(crate) async fn move_to(&mut self, url: &str) {
        self.database = Database::new(url).unwrap();
        url.clone_into(&mut self.url);
        url.clone_into(&mut self.raw);
        self.hand = Mutex::new(connect(url).await);
        self.any = Mutex::new(self.database.store());
    }

    /// On a server that the test may hurt.
    pub(crate) async fn alone_on(server: &Server) -> Self {
        let url = block_in_place(|| server.database("alone"));
        Self::at(&url, &url, ()).await.migrated().await
    }

    /// With new connections, after its server was restarted. Not for a file, which goes with the old ones.
    pub(crate) async fn reopen(&mut self) {
        self.hand = Mutex::new(connect(&self.raw).await);
        self.any = Mutex::new(self.database.store());
    }

    async fn on(server: fn() -> &'static Server) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let url = spawn_blocking(move || server().database(&name)).await.unwrap();
        Self::at(&url, &url, ()).await
    }

    /// `url` as a user writes it, `raw` as the driver takes it; `place` keeps the database for as long.
    async fn at(url: &str, raw: &str, place: impl Any + Send + Sync) -> Self {
        Self::of(Database::new(url).unwrap().create(), url, raw, place).await
    }

    async fn of(database: Database, url: &str, raw: &str, place: impl Any + Send + Sync) -> Self {
        let hand = Mutex::new(connect(raw).await);
        let any = Mutex::new(database.store());
        Self { database, url: url.to_owned(), raw: raw.to_owned(), hand, any, _place: Box::new(place) }
    }

    /// With the schema, and the transition table as a trigger: whatever a test does, no SQL moves outside it.
    pub(crate) async fn migrated(self) -> Self {
        self.store().migrate().await.unwrap();
        self.sql(&dialect::moves(self.database.dialect())).await;
        self
    }

    /// One more connection of ours.
    pub(crate) fn store(&self) -> Store {
        self.database.store()
    }

    /// As a user writes it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    // A person at a SQL client.

    /// Edits by hand; answers the rows changed.
    pub(crate) async fn sql(&self, text: &str) -> u64 {
        self.try_sql(text).await.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    pub(crate) async fn try_sql(&self, text: &str) -> sqlx::Result<u64> {
        let mut hand = self.hand.lock().await;
        Ok(hand.execute(sqlx::raw_sql(AssertSqlSafe(text.to_owned()))).await?.rows_affected())
    }

    /// The one number a query answers.
    pub(crate) async fn int(&self, query: &str) -> i64 {
        let mut hand = self.hand.lock().await;
        sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(&mut *hand).await.unwrap()
    }

    /// The one text a query answers.
    pub(crate) async fn text(&self, query: &str) -> String {
        let mut hand = self.hand.lock().await;
        sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(&mut *hand).await.unwrap()
    }

    /// Moves an instant back: time passes for these rows alone.
    pub(crate) async fn age(&self, table: &str, column: &str, by: Duration, rows: &str) {
        let earlier = dialect::earlier(self.database.dialect(), column, by);
        self.sql(&format!("UPDATE {table} SET {column} = {earlier} WHERE {rows}")).await;
    }

    /// Changes whenever somebody commits a change to tasks, coolings, attempts or semaphores.
    pub(crate) async fn changes(&self) -> i64 {
        self.int(dialect::changes(self.database.dialect())).await
    }

    /// From now on `event` (`INSERT`, `UPDATE`, `DELETE`) on this table fails, and its unit dies at that statement.
    pub(crate) async fn fail_on(&self, event: &str, table: &str) {
        self.sql(&dialect::fail_on(self.database.dialect(), event, table)).await;
    }

    /// Ends [`Db::fail_on`].
    pub(crate) async fn mend(&self, table: &str) {
        self.sql(&dialect::mend(self.database.dialect(), table)).await;
    }

    /// Begins a transaction with these statements, on a connection of its own, and keeps it open.
    pub(crate) async fn hold(&self, statements: &[&str]) -> Held {
        let mut conn = connect(&self.raw).await;
        conn.execute(dialect::begin(self.database.dialect())).await.unwrap();
        for statement in statements {
            conn.execute(sqlx::raw_sql(AssertSqlSafe((*statement).to_owned()))).await.unwrap();
        }
        Held(conn)
    }

    // What most tests begin with and ask.

    /// `n` tasks of kind `call`.
    pub(crate) async fn enqueue(&self, n: usize) -> Vec<i64> {
        ids(&self.any.lock().await.enqueue(&vec![NewTask::new("call", "{}"); n]).await.unwrap())
    }

    /// One task like this.
    pub(crate) async fn enqueue_one(&self, task: NewTask) -> i64 {
        self.any.lock().await.enqueue(&[task]).await.unwrap()[0].id
    }

    /// A living consumer of kind `call`.
    pub(crate) async fn consumer(&self, id: &str) -> Consumer {
        self.any.lock().await.register(&registration(id)).await.unwrap();
        Consumer::new(id, self.store())
    }

    /// The consumer's lease passes and a reclaimer fences it.
    pub(crate) async fn vanish(&self, consumer: &str) {
        let rows = format!("id = '{consumer}'");
        self.age("permitq_consumer", "lease_until", Duration::from_hours(1), &rows).await;
        let mut store = self.any.lock().await;
        let expired = store.expired().await.unwrap();
        let expired = expired.iter().find(|expired| expired.consumer == consumer).unwrap();
        assert!(store.fence(expired).await.unwrap());
    }

    /// Takes back whatever nobody will finish; answers the tasks.
    pub(crate) async fn reclaim(&self) -> Vec<i64> {
        let ended = self.any.lock().await.reclaim("reclaimer", LEASE, 0, 1000).await.unwrap();
        ended.iter().map(|attempt| attempt.task).collect()
    }

    /// All given-up calls must be over now, and the reclaimer ends their coolings; answers how many.
    pub(crate) async fn cool_down(&self) -> i64 {
        self.age("permitq_cooling", "until", Duration::from_hours(24), "1 = 1").await;
        self.end_coolings(1000).await.unwrap()
    }

    /// What cools longer than it need, at most `limit`.
    pub(crate) async fn end_coolings(&self, limit: i64) -> permitq::store::Result<i64> {
        let mut store = self.any.lock().await;
        let now = store.clock().await?;
        store.end_coolings("default", now, limit).await
    }

    pub(crate) async fn set_max(&self, max: i64) {
        assert!(self.any.lock().await.set_max("default", max, "test").await.unwrap());
    }

    pub(crate) async fn task(&self, id: i64) -> Task {
        self.any.lock().await.task(id).await.unwrap().unwrap()
    }

    pub(crate) async fn leave(&self, consumer: &str, how: Left) {
        self.any.lock().await.leave(consumer, how).await.unwrap();
    }

    /// Permits taken of the semaphore `default`.
    pub(crate) async fn in_use(&self) -> i64 {
        self.int("SELECT in_use FROM permitq_semaphore WHERE name = 'default'").await
    }

    /// In one read: `in_use` equals running tasks plus coolings, of every semaphore.
    pub(crate) async fn conservation(&self) {
        let mut hand = self.hand.lock().await;
        let rows = sqlx::query(
            "SELECT s.name, s.in_use,
                    (SELECT count(*) FROM permitq_task t WHERE t.state = 'running' AND t.semaphore = s.name),
                    (SELECT count(*) FROM permitq_cooling k WHERE k.semaphore = s.name)
               FROM permitq_semaphore s",
        )
        .fetch_all(&mut *hand)
        .await
        .unwrap();
        for row in rows {
            let (name, in_use): (String, i64) = (row.get(0), row.get(1));
            let (running, cooling): (i64, i64) = (row.get(2), row.get(3));
            assert_eq!(in_use, running + cooling, "{name}: {running} running + {cooling} cooling");
        }
    }

    /// Conservation, and so many permits taken.
    pub(crate) async fn holds(&self, in_use: i64) {
        self.conservation().await;
        assert_eq!(self.in_use().await, in_use);
    }
}

impl Held {
    pub(crate) async fn execute(&mut self, statement: &str) {
        self.0.execute(sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))).await.unwrap();
    }

    pub(crate) async fn commit(self) {
        self.end("COMMIT").await;
    }

    pub(crate) async fn roll_back(self) {
        self.end("ROLLBACK").await;
    }

    async fn end(mut self, how: &'static str) {
        self.0.execute(how).await.unwrap();
        self.0.close().await.unwrap();
    }

    /// Long enough for a unit to run into what is held; it cannot get past it, however long this takes.
    pub(crate) async fn holds_up<T>(&self, unit: &mut JoinHandle<T>) {
        assert!(timeout(Duration::from_millis(50), unit).await.is_err(), "nothing held it up");
    }
}

/// What a process says of itself when it starts.
pub(crate) fn registration(id: &str) -> Registration {
    Registration {
        id: id.to_owned(),
        name: id.to_owned(),
        host: "host".to_owned(),
        pid: 7,
        slots: 4,
        serves: r#"{"call": "default"}"#.to_owned(),
        lease: LEASE,
    }
}

/// A reclaimer and auditor that passes when it is told to, for consumers of the default lease and beat.
pub(crate) fn upkeep(hold: Duration) -> upkeep::Options {
    upkeep::Options {
        every: Duration::from_secs(1),
        lease: LEASE,
        heartbeat: Duration::from_secs(15),
        hold,
        retention: Retention::default(),
        ageing: None,
        name: "reclaimer".to_owned(),
    }
}

pub(crate) fn ids(enqueued: &[Enqueued]) -> Vec<i64> {
    enqueued.iter().map(|enqueued| enqueued.id).collect()
}

async fn connect(url: &str) -> AnyConnection {
    let options: sqlx::any::AnyConnectOptions = url.parse().unwrap();
    let mut hand = options.disable_statement_logging().connect().await.unwrap();
    if url.starts_with("sqlite") {
        // SQLite's write lock goes to whoever is lucky, and tests have many who try.
        hand.execute("PRAGMA busy_timeout = 30000").await.unwrap();
    }
    hand
}
