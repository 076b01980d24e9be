//! How many claims and finishes a second, by 1, 8 and 32 clients, each with a connection of its own: through the store, and
//! against the ceiling that the same statements have when nothing but the driver stands before them.
//!
//! Three ways in each round, one after the other, so that the machine's mood meets all alike: `store` (a claim and a
//! finish, two transactions), `raw` (the same statements over the bare driver), `hand-over` (one exchange does both).
//! What counts is the ratio within one run.

use std::fmt;
use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{NewTask, OnAbandon, Outcome, Retry};
use permitq::store::{Database, Dialect, Exchange, Policy, Registration, Store};
use serde::Serialize;
use serde_json::json;
use sqlx::Connection;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::Error;

/// A measurement of this database, which must hold no tasks.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Where.
    pub url: String,
    /// For how long each way is measured with each number of clients.
    pub time: Duration,
}

/// One row: pairs of claim and finish a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Clients at once.
    pub clients: usize,
    /// Claim and finish through the store.
    pub store: f64,
    /// The same statements over the bare driver.
    pub raw: f64,
    /// One exchange for both.
    pub hand_over: f64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Rates {
    /// By number of clients.
    pub rows: Vec<Row>,
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "clients  store/s  raw/s  store:raw  hand-over/s  hand-over:store")?;
        for Row { clients, store, raw, hand_over } in &self.rows {
            let (to_raw, to_store) = (store / raw, hand_over / store);
            writeln!(
                f,
                "{clients:>7}  {store:>7.0}  {raw:>5.0}  {to_raw:>9.2}  {hand_over:>11.0}  {to_store:>15.1}"
            )?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Store,
    Raw,
    HandOver,
}

const KIND: &str = "rate";
const SEMAPHORE: &str = "default";
const LEASE: Duration = Duration::from_hours(1);

impl Rate {
    /// # Errors
    /// Where the database cannot be reached, or holds tasks.
    pub async fn run(&self) -> Result<Rates, Error> {
        let database = Database::new(&self.url)?.create();
        let mut store = database.store();
        store.migrate().await?;
        if !store.states(None).await?.is_empty() {
            return Err("this database has tasks already; name an empty one".into());
        }
        store.set_max(SEMAPHORE, 1000, "loadtest").await?;
        let mut rows = Vec::new();
        for clients in [1, 8, 32] {
            let mut row = Row { clients, store: 0.0, raw: 0.0, hand_over: 0.0 };
            for (way, into) in
                [(Way::Store, &mut row.store), (Way::Raw, &mut row.raw), (Way::HandOver, &mut row.hand_over)]
            {
                *into = self.measure(&database, &mut store, clients, way).await?;
            }
            rows.push(row);
        }
        Ok(Rates { rows })
    }

    async fn measure(
        &self,
        database: &Database,
        store: &mut Store,
        clients: usize,
        way: Way,
    ) -> Result<f64, Error> {
        // More than any of them takes.
        for _ in 0..(self.time.as_secs().max(1) * 5) {
            store.enqueue(&vec![NewTask::new(KIND, "{}"); 1000]).await?;
        }
        let mut fleet = JoinSet::new();
        let end = Instant::now() + self.time;
        for _ in 0..clients {
            let id = format!("rate-{:x}", fastrand::u64(..));
            let registration = Registration {
                id: id.clone(),
                name: "rate".to_owned(),
                host: "here".to_owned(),
                pid: std::process::id(),
                slots: 1,
                serves: "{}".to_owned(),
                lease: LEASE,
            };
            store.register(&registration).await?;
            let (database, url) = (database.clone(), self.url.clone());
            fleet.spawn(async move {
                match way {
                    Way::Store => pairs(&database, &id, end, false).await,
                    Way::HandOver => pairs(&database, &id, end, true).await,
                    Way::Raw => match database.dialect() {
                        Dialect::Sqlite => sqlite::pairs(&url, &id, end).await,
                        Dialect::Postgres => postgres::pairs(&url, &id, end).await,
                        Dialect::Mysql => mysql::pairs(&url, &id, end).await,
                    },
                }
            });
        }
        let mut done = 0;
        while let Some(pairs) = fleet.join_next().await {
            done += pairs??;
        }
        Ok(f64::from(done) / self.time.as_secs_f64())
    }
}

/// Through the store, until `end`.
async fn pairs(database: &Database, consumer: &str, end: Instant, hand_over: bool) -> Result<u32, Error> {
    let (mut store, clock) = (database.store(), Clock::default());
    let policies =
        [Policy { kind: KIND.to_owned(), hold: LEASE, max_attempts: 3, on_abandon: OnAbandon::Retry }];
    let (mut done, mut ended) = (0, Vec::new());
    loop {
        let over = Instant::now() >= end;
        // Without hand-over, a finish claims nothing.
        let want = usize::from(!over && (hand_over || ended.is_empty()));
        if want == 0 && ended.is_empty() {
            return Ok(done);
        }
        let exchange = Exchange {
            consumer,
            semaphore: SEMAPHORE,
            ended: &ended,
            want,
            policies: &policies,
            sent: clock.now(),
        };
        let exchanged = store.exchange(&exchange).await?;
        done += u32::try_from(ended.len())?;
        let outcome = Outcome::succeeded(None);
        ended = exchanged
            .claims
            .into_iter()
            .map(|claim| claim.end(&outcome, None, &Retry::default(), 0.0))
            .collect();
    }
}

/// The same statements, without the store.
macro_rules! raw {
    ($name:ident, $connection:ty) => {
        mod $name {
            use super::*;
            use sqlx::{Executor, Row};

            macro_rules! sql {
                ($statement:literal) => {
                    include_str!(concat!("../../sql/", stringify!($name), "/", $statement, ".sql"))
                };
            }

            pub(super) async fn pairs(url: &str, consumer: &str, end: Instant) -> Result<u32, Error> {
                let mut conn = <$connection>::connect(url).await?;
                conn.execute(sqlx::raw_sql(sql!("session"))).await?;
                let mut done = 0;
                while Instant::now() < end {
                    let Some(task) = again(&mut conn, consumer, None).await else { continue };
                    while again(&mut conn, consumer, Some(task)).await.is_none() {}
                    done += 1;
                }
                conn.close().await?;
                Ok(done)
            }

            /// One transaction; `None` where it has to be repeated.
            async fn again(conn: &mut $connection, consumer: &str, task: Option<(i64, i64)>) -> Option<(i64, i64)> {
                let done = match task {
                    None => claim(conn, consumer).await,
                    Some(task) => finish(conn, consumer, task).await.map(|()| Some(task)),
                };
                if let Ok(Some(task)) = done {
                    return Some(task);
                }
                let _rolled_back = conn.execute("ROLLBACK").await;
                sleep(Duration::from_micros(fastrand::u64(200..2000))).await;
                None
            }

            async fn claim(conn: &mut $connection, consumer: &str) -> sqlx::Result<Option<(i64, i64)>> {
                conn.execute(sql!("begin")).await?;
                sqlx::query(sql!("lock")).bind(SEMAPHORE).fetch_all(&mut *conn).await?;
                let picked =
                    sqlx::query(sql!("pick")).bind(SEMAPHORE).bind(KIND).bind(1_i64).fetch_all(&mut *conn).await?;
                let Some(row) = picked.first() else { return Ok(None) };
                let (id, claim_no): (i64, i64) = (row.try_get("id")?, row.try_get("claim_no")?);
                let hold = i64::try_from(LEASE.as_micros()).unwrap_or(i64::MAX);
                let marks = json!([{"id": id, "hold": hold, "max_attempts": 3, "on_abandon": "retry"}]).to_string();
                sqlx::query(sql!("mark")).bind(marks).bind(consumer).bind(consumer).execute(&mut *conn).await?;
                sqlx::query(sql!("permits")).bind(1_i64).bind(SEMAPHORE).execute(&mut *conn).await?;
                conn.execute("COMMIT").await?;
                Ok(Some((id, claim_no)))
            }

            async fn finish(conn: &mut $connection, consumer: &str, (id, claim_no): (i64, i64)) -> sqlx::Result<()> {
                let ended = json!([{"id": id, "claim_no": claim_no, "outcome": "succeeded", "state": "succeeded",
                    "attempts": 1, "after_cooling": 0}])
                .to_string();
                conn.execute(sql!("begin")).await?;
                sqlx::query(sql!("own")).bind(&ended).bind(consumer).fetch_all(&mut *conn).await?;
                sqlx::query(sql!("log")).bind(consumer).bind(&ended).execute(&mut *conn).await?;
                sqlx::query(sql!("settle")).bind(&ended).execute(&mut *conn).await?;
                sqlx::query(sql!("permits")).bind(-1_i64).bind(SEMAPHORE).execute(&mut *conn).await?;
                conn.execute("COMMIT").await?;
                Ok(())
            }
        }
    };
}

raw!(sqlite, sqlx::SqliteConnection);
raw!(postgres, sqlx::PgConnection);
raw!(mysql, sqlx::MySqlConnection);
