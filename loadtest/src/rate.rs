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
use permitq::store::{Database, Exchange, Policy, Registration, Store};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Error;
use crate::raw::Raw;

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
                    Way::Raw => {
                        let (dialect, batch) = (database.dialect(), 1);
                        let raw = Raw { url, dialect, consumer: id, kind: KIND, batch, log: true, cap: true };
                        Ok(u32::try_from(raw.pairs(end).await?)?)
                    }
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
    let policies = [Policy {
        kind: KIND.to_owned(),
        hold: LEASE,
        max_attempts: 3,
        on_abandon: OnAbandon::Retry,
        downstream: "default".to_owned(),
    }];
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
            probe: None,
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
