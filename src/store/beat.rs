//! A consumer's own row: registering, beating, draining, going. And what only a claim's owner may say after it lost it.

use std::time::Duration;

use serde_json::json;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::record::clean;
use super::rows::{Read, micros};
use super::unit::{How, Tx, Unit};
use super::upkeep::{end_own, own_cooling};
use super::{Result, Store};
use crate::model::{Attempt, Ended, Standing, State};

/// What a process says of itself when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Unique per start; never used again.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// How many calls at once.
    pub slots: usize,
    /// What it serves: a JSON object from kind (or `*`) to semaphore.
    pub serves: String,
    /// How long its claims hold without another beat.
    pub lease: Duration,
}

/// How a consumer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It claims no more, but still beats.
    Draining,
    /// It is gone for ever.
    Gone,
}

/// A task that the database thinks we run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Which attempt.
    pub attempt: Attempt,
    /// Whose permit it holds.
    pub semaphore: String,
    /// Its budget and policy.
    pub standing: Standing,
}

impl Store {
    /// Registers a new consumer. Counts as its first beat.
    pub async fn register(&mut self, registration: &Registration) -> Result<()> {
        self.run(registration).await
    }

    /// Renews the lease and answers what the database thinks this consumer runs; `None` where it is gone.
    pub async fn beat(&mut self, consumer: &str, lease: Duration) -> Result<Option<Vec<Attempt>>> {
        self.run(&Beat { consumer, lease }).await
    }

    /// What the database thinks this consumer runs, with what handing it back needs.
    pub async fn running(&mut self, consumer: &str) -> Result<Vec<Orphan>> {
        self.run(&Running { consumer }).await
    }

    /// Drains or goes. Whoever is gone already stays so.
    pub async fn leave(&mut self, consumer: &str, how: Left) -> Result<()> {
        self.run(&Leave { consumer, how }).await
    }

    /// Keeps how the call of a lost claim ended as evidence on its attempt, and where it is known to be over, ends its own
    /// cooling. Changes no task. Answers whether the attempt took it.
    pub async fn late(&mut self, consumer: &str, ended: &Ended) -> Result<bool> {
        self.run(&Late { consumer, ended }).await
    }
}

impl Unit for Registration {
    type Answer = ();
    const NAME: &'static str = "register";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<()> {
        let row = json!({
            "id": self.id,
            "name": self.name,
            "host": self.host,
            "pid": self.pid,
            "version": env!("CARGO_PKG_VERSION"),
            "slots": self.slots,
            "serves": self.serves,
            "lease": micros(self.lease),
        });
        sqlx::query(tx.sql.register).bind(row.to_string()).execute(&mut *tx.conn).await?;
        Ok(())
    }
}

struct Beat<'a> {
    consumer: &'a str,
    lease: Duration,
}

impl Unit for Beat<'_> {
    type Answer = Option<Vec<Attempt>>;
    const NAME: &'static str = "beat";
    /// One statement where the database can, else two, each for itself: a beat holds no lock while it waits for an answer.
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Option<Vec<Attempt>>> {
        let beat = sqlx::query(tx.sql.beat).bind(micros(self.lease)).bind(self.consumer);
        if tx.sql.held.is_empty() {
            let rows = beat.fetch_all(&mut *tx.conn).await?;
            return rows.first().map(held).transpose();
        }
        let beat = beat.execute(&mut *tx.conn).await?;
        if beat.rows_affected() == 0 {
            return Ok(None);
        }
        let rows = sqlx::query(tx.sql.held).bind(self.consumer).fetch_all(&mut *tx.conn).await?;
        rows.iter().map(Read::attempt).collect::<sqlx::Result<_>>().map(Some)
    }
}

fn held(row: &AnyRow) -> sqlx::Result<Vec<Attempt>> {
    let held: Vec<(i64, i64)> =
        serde_json::from_str(row.try_get(0)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(held.into_iter().map(|(task, claim_no)| Attempt { task, claim_no }).collect())
}

struct Running<'a> {
    consumer: &'a str,
}

impl Unit for Running<'_> {
    type Answer = Vec<Orphan>;
    const NAME: &'static str = "read what we run";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Orphan>> {
        let rows = sqlx::query(tx.sql.running).bind(self.consumer).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(Orphan {
                    attempt: row.attempt()?,
                    semaphore: row.text("semaphore")?,
                    standing: row.standing()?,
                })
            })
            .collect()
    }
}

struct Leave<'a> {
    consumer: &'a str,
    how: Left,
}

impl Unit for Leave<'_> {
    type Answer = ();
    const NAME: &'static str = "leave";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<()> {
        let state = match self.how {
            Left::Draining => "draining",
            Left::Gone => "gone",
        };
        sqlx::query(tx.sql.leave).bind(state).bind(self.consumer).execute(&mut *tx.conn).await?;
        Ok(())
    }
}

struct Late<'a> {
    consumer: &'a str,
    ended: &'a Ended,
}

impl Unit for Late<'_> {
    type Answer = bool;
    const NAME: &'static str = "keep a late answer";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let Ended { attempt, status, settlement, .. } = self.ended;
        let answer = settlement.result.as_deref().or(settlement.error.as_deref()).unwrap_or_default();
        let outcome = if settlement.state == State::Succeeded { "succeeded" } else { "failed" };
        // Coolings before attempts, as whoever ends coolings locks them.
        let over = settlement.cooling.is_none();
        let cooling = if over { own_cooling(tx, *attempt, self.consumer).await? } else { Vec::new() };
        let kept = sqlx::query(tx.sql.late)
            .bind(status.map(i64::from))
            .bind(outcome)
            .bind(clean(answer))
            .bind(attempt.task)
            .bind(attempt.claim_no)
            .bind(self.consumer)
            .execute(&mut *tx.conn)
            .await?;
        end_own(tx, &cooling).await?;
        Ok(kept.rows_affected() == 1)
    }
}
