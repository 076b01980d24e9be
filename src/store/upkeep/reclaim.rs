//! Fences consumers whose lease has passed, and takes back the tasks that nobody will finish.

use std::time::Duration;

use sqlx::any::AnyRow;

use crate::model::{Attempt, End, Ended, Outcome, Retry, Verdict, Why, settle};
use crate::store::record::record;
use crate::store::rows::{Read, micros};
use crate::store::unit::{How, Tx, Unit};
use crate::store::{Result, Store};

/// A consumer whose lease has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// Its id.
    pub consumer: String,
    /// The lease as stored: a reclaimer fences only what it has read twice.
    pub lease_until: i64,
}

impl Store {
    /// Consumers whose lease has passed by the database's clock.
    pub async fn expired(&mut self) -> Result<Vec<Expired>> {
        self.run(&ReadExpired).await
    }

    /// Declares a consumer gone, for ever, if its lease is still the one that was read and still over.
    pub async fn fence(&mut self, expired: &Expired) -> Result<bool> {
        self.run(&Fence { expired }).await
    }

    /// Takes back running tasks that nobody will finish, ids above `after`, at most `limit`; their permits cool. A task
    /// whose call must have been over for a whole `lease` counts too. Answers the attempts that ended.
    pub async fn reclaim(
        &mut self,
        by: &str,
        lease: Duration,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Attempt>> {
        let abandoned = Abandoned { lease, after, limit };
        match self.run(&Reclaim { by, abandoned }).await {
            Err(error) if error.is_about_rows() => self.reclaim_singly(by, abandoned).await,
            done => done,
        }
    }

    /// One by one, past rows that cannot be taken back (edited by hand), up to the first batch with one that can.
    async fn reclaim_singly(&mut self, by: &str, mut abandoned: Abandoned) -> Result<Vec<Attempt>> {
        let mut ended = Vec::new();
        while ended.is_empty() {
            let batch = self.run(&abandoned).await?;
            let Some(last) = batch.last() else { break };
            abandoned.after = *last;
            for id in batch {
                let one = Abandoned { after: id - 1, limit: 1, ..abandoned };
                match self.run(&Reclaim { by, abandoned: one }).await {
                    Ok(taken) => ended.extend(taken),
                    Err(error) if error.is_about_rows() => {} // the audit names it
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(ended)
    }

    /// Forgets consumers that have been gone for longer than `age`.
    pub async fn retire_consumers(&mut self, age: Duration) -> Result<u64> {
        self.run(&Retire { age }).await
    }
}

struct ReadExpired;

impl Unit for ReadExpired {
    type Answer = Vec<Expired>;
    const NAME: &'static str = "look for expired leases";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Expired>> {
        let rows = sqlx::query(tx.sql.expired).fetch_all(&mut *tx.conn).await?;
        rows.iter()
            .map(|row| Ok(Expired { consumer: row.text("id")?, lease_until: row.int("lease_until")? }))
            .collect()
    }
}

struct Fence<'a> {
    expired: &'a Expired,
}

impl Unit for Fence<'_> {
    type Answer = bool;
    const NAME: &'static str = "fence";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<bool> {
        let done = sqlx::query(tx.sql.fence)
            .bind(&*self.expired.consumer)
            .bind(self.expired.lease_until)
            .execute(&mut *tx.conn)
            .await?;
        Ok(done.rows_affected() == 1)
    }
}

/// Which of them to look at.
#[derive(Clone, Copy)]
struct Abandoned {
    lease: Duration,
    after: i64,
    limit: i64,
}

impl Unit for Abandoned {
    type Answer = Vec<i64>;
    const NAME: &'static str = "look for abandoned tasks";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<i64>> {
        self.rows(tx).await?.iter().map(|row| row.int("id")).collect()
    }
}

impl Abandoned {
    /// Locked.
    async fn rows(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<AnyRow>> {
        sqlx::query(tx.sql.abandoned)
            .bind(self.after)
            .bind(micros(self.lease))
            .bind(self.limit)
            .fetch_all(&mut *tx.conn)
            .await
    }
}

struct Reclaim<'a> {
    by: &'a str,
    abandoned: Abandoned,
}

impl Unit for Reclaim<'_> {
    type Answer = Vec<Attempt>;
    const NAME: &'static str = "reclaim";

    /// The permits go from tasks to cooling rows, so no semaphore is touched.
    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Vec<Attempt>> {
        let ended = self.abandoned.rows(tx).await?;
        let ended = ended.iter().map(abandoned).collect::<sqlx::Result<Vec<_>>>()?;
        // The owner's own name in the log would tell a late finisher that it was recorded.
        let by = format!("reclaimer {}", self.by);
        record(tx, &by, &ended.iter().collect::<Vec<_>>()).await?;
        Ok(ended.iter().map(|ended| ended.attempt).collect())
    }
}

fn abandoned(row: &AnyRow) -> sqlx::Result<Ended> {
    let consumer = row.text("consumer")?;
    let outcome = Outcome {
        verdict: Verdict::Abandoned { error: format!("consumer {consumer} vanished") },
        end: End::Unclear(Why::Abandoned),
        status: None,
    };
    Ok(Ended {
        attempt: row.attempt()?,
        semaphore: row.text("semaphore")?,
        called_after: None,
        status: None,
        settlement: settle(row.standing()?, &outcome, &Retry::default(), 0.0),
        signal: None,
    })
}

struct Retire {
    age: Duration,
}

impl Unit for Retire {
    type Answer = u64;
    const NAME: &'static str = "forget consumers";

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<u64> {
        Ok(sqlx::query(tx.sql.retired).bind(micros(self.age)).execute(&mut *tx.conn).await?.rows_affected())
    }
}
