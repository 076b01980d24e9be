//! `history`: what a claim and a finish cost when the tables are long.

use std::fmt;
use std::time::Duration;

use permitq::clock::Clock;
use permitq::model::{NewTask, OnAbandon, Outcome, Retry};
use permitq::store::{Dialect, Exchange, Policy, Registration};
use serde::Serialize;
use tokio::time::Instant;

use super::goal::{Goal, lines};
use super::stats::Spread;
use super::{Error, Place, Target};

/// What is measured.
#[derive(Clone, Debug)]
pub struct History {
    /// Where.
    pub database: Target,
    /// Finished tasks, each with its attempt.
    pub finished: u64,
    /// Delayed tasks at the highest priority.
    pub delayed: u64,
    /// Pairs of claim and finish.
    pub pairs: usize,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// One claim and one finish, in empty tables.
    pub empty: Spread,
    /// The same in long ones.
    pub long: Spread,
    /// The long median over the empty one.
    pub ratio: f64,
    /// What filling them took.
    pub filled_s: f64,
    /// What was aimed at.
    pub targets: Vec<Goal>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "claim and finish, empty tables: {}", self.empty)?;
        writeln!(f, "claim and finish, long tables:  {} (filled in {:.0} s)", self.long, self.filled_s)?;
        write!(f, "long over empty: {:.2}", self.ratio)?;
        lines(f, &self.targets)
    }
}

impl History {
    /// # Errors
    /// Where something is in the way of measuring.
    pub async fn run(&self) -> Result<Report, Error> {
        let mut place = Place::open(&self.database).await?;
        let empty = self.measure(&place, "empty").await?;
        let began = Instant::now();
        self.fill(&mut place).await?;
        let filled_s = began.elapsed().as_secs_f64();
        let long = self.measure(&place, "long").await?;
        let ratio = long.p50_ms / empty.p50_ms;
        let targets = vec![Goal::at_most("claim and finish, long tables over empty ones", ratio, 1.2)];
        Ok(Report { empty, long, ratio, filled_s, targets })
    }

    async fn measure(&self, place: &Place, consumer: &str) -> Result<Spread, Error> {
        let (mut store, clock) = (place.store(), Clock::default());
        let lease = Duration::from_hours(1);
        let registration = Registration {
            id: consumer.to_owned(),
            name: consumer.to_owned(),
            host: "here".to_owned(),
            pid: std::process::id(),
            slots: 1,
            serves: "{}".to_owned(),
            lease,
        };
        store.register(&registration).await?;
        store.enqueue(&vec![NewTask::new("call", "{}"); self.pairs]).await?;
        let policies = [Policy {
            kind: "call".to_owned(),
            hold: lease,
            max_attempts: 3,
            on_abandon: OnAbandon::Retry,
            downstream: "default".to_owned(),
        }];
        let mut took = Vec::new();
        for _ in 0..self.pairs {
            let before = Instant::now();
            let mut ended = Vec::new();
            for want in [1, 0] {
                let sent = clock.now();
                let exchange = Exchange {
                    consumer,
                    semaphore: "default",
                    ended: &ended,
                    want,
                    policies: &policies,
                    sent,
                    probe: None,
                };
                let claims = store.exchange(&exchange).await?.claims;
                let outcome = Outcome::succeeded(None);
                ended = claims
                    .into_iter()
                    .map(|claim| claim.end(&outcome, None, &Retry::default(), 0.0))
                    .collect();
            }
            took.push(u64::try_from(before.elapsed().as_micros())?);
        }
        Ok(Spread::of(took))
    }

    /// By statements of the server's own, a million rows at a time.
    async fn fill(&self, place: &mut Place) -> Result<(), Error> {
        const BATCH: u64 = 1_000_000;
        let (numbers, ago, ahead): (fn(u64) -> String, _, _) = match place.dialect() {
            Dialect::Sqlite => (
                |to| {
                    format!(
                        "(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {to}) SELECT n FROM s)"
                    )
                },
                "(unixepoch() - 3600) * 1000000",
                "(unixepoch() + 36000) * 1000000 + n",
            ),
            Dialect::Postgres => (
                |to| format!("generate_series(1, {to}) s (n)"),
                "now() - interval '1 hour'",
                "now() + interval '10 hours' + n * interval '1 microsecond'",
            ),
            Dialect::Mysql => (
                |to| format!("(SELECT seq AS n FROM seq_1_to_{to}) s"),
                "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
                "UTC_TIMESTAMP(6) + INTERVAL 36000000000 + n MICROSECOND",
            ),
        };
        // They are not born finished: the table's check of new rows stands aside.
        let (aside, back) = match place.dialect() {
            Dialect::Sqlite => (
                "DROP TRIGGER permitq_task_check",
                include_str!("../../../sql/sqlite/migrations/0001_core.sql"),
            ),
            Dialect::Postgres => (
                "ALTER TABLE permitq_task DISABLE TRIGGER USER",
                "ALTER TABLE permitq_task ENABLE TRIGGER USER; ANALYZE",
            ),
            Dialect::Mysql => ("DROP TRIGGER permitq_task_check", "ANALYZE TABLE permitq_task"),
        };
        place.execute(aside).await?;
        let mut left = self.finished;
        while left > 0 {
            let rows = numbers(left.min(BATCH));
            place
                .execute(&format!(
                    "INSERT INTO permitq_task (kind, state, run_at, claim_no, attempts, started_at, finished_at)
                     SELECT 'call', 'succeeded', {ago}, 1, 1, {ago}, {ago} FROM {rows}"
                ))
                .await?;
            left -= left.min(BATCH);
        }
        place
            .execute(
                "INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, ended_at,
                                              permit_released_at, outcome, ended_by)
                 SELECT t.id, 1, 'call', 'default', 'c', t.run_at, t.run_at, t.run_at, 'succeeded', 'c' FROM permitq_task t
                  WHERE t.state = 'succeeded'
                    AND NOT EXISTS (SELECT 1 FROM permitq_attempt a WHERE a.task = t.id AND a.claim_no = 1)",
            )
            .await?;
        if self.delayed > 0 {
            let rows = numbers(self.delayed);
            place
                .execute(&format!(
                    "INSERT INTO permitq_task (kind, state, priority, run_at) SELECT 'call', 'scheduled', 1000, {ahead} FROM {rows}"
                ))
                .await?;
        }
        if place.dialect() == Dialect::Sqlite {
            let trigger = back.find("CREATE TRIGGER permitq_task_check").and_then(|from| {
                let end = back[from..].find("\nEND;")?;
                Some(&back[from..from + end + 5])
            });
            return place.execute(trigger.ok_or("no such trigger")?).await;
        }
        place.execute(back).await
    }
}
