//! Reading rows: integers are `i64`, instants microseconds, durations seconds.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::model::schedule::{
    BadSchedule, Cron, CronDialect, KeyTemplate, Misfire, NewJob, Plan, Trigger, When,
};
use crate::model::{Attempt, NewTask, OnAbandon, Standing, State, Task};

pub(super) trait Read {
    fn int(&self, column: &str) -> sqlx::Result<i64>;
    fn int_or_null(&self, column: &str) -> sqlx::Result<Option<i64>>;
    fn text(&self, column: &str) -> sqlx::Result<String>;
    fn text_or_null(&self, column: &str) -> sqlx::Result<Option<String>>;
    fn seconds_or_null(&self, column: &str) -> sqlx::Result<Option<Duration>>;

    fn instant(&self, column: &str) -> sqlx::Result<Timestamp> {
        instant(column, self.int(column)?)
    }

    fn instant_or_null(&self, column: &str) -> sqlx::Result<Option<Timestamp>> {
        self.int_or_null(column)?.map(|micros| instant(column, micros)).transpose()
    }

    fn count(&self, column: &str) -> sqlx::Result<u32> {
        u32::try_from(self.int(column)?).map_err(|error| bad(column, error))
    }

    fn count_or_null(&self, column: &str) -> sqlx::Result<Option<u32>> {
        self.int_or_null(column)?.map(u32::try_from).transpose().map_err(|error| bad(column, error))
    }

    fn word<T: FromStr<Err = String>>(&self, column: &str) -> sqlx::Result<T> {
        self.text(column)?.parse().map_err(|error: String| bad(column, error))
    }

    fn word_or_null<T: FromStr<Err = String>>(&self, column: &str) -> sqlx::Result<Option<T>> {
        self.text_or_null(column)?
            .map(|word| word.parse())
            .transpose()
            .map_err(|error: String| bad(column, error))
    }

    fn attempt(&self) -> sqlx::Result<Attempt> {
        Ok(Attempt { task: self.int("id")?, claim_no: self.int("claim_no")? })
    }

    /// Budget and policy of a running task; a row that was never claimed by us has none and gets the defaults.
    fn standing(&self) -> sqlx::Result<Standing> {
        Ok(Standing {
            attempts: self.count("attempts")?,
            max_attempts: self.count_or_null("max_attempts")?.unwrap_or(1),
            on_abandon: self.word_or_null::<OnAbandon>("on_abandon")?.unwrap_or_default(),
        })
    }

    /// What a job does about what is late.
    fn misfire(&self) -> sqlx::Result<Misfire> {
        Ok(Misfire {
            policy: self.word("misfire")?,
            after: self.seconds_or_null("misfire_after")?.unwrap_or_default(),
            most: self.count("misfire_max")?,
        })
    }
}

impl Read for AnyRow {
    fn int(&self, column: &str) -> sqlx::Result<i64> {
        self.try_get(column)
    }

    fn int_or_null(&self, column: &str) -> sqlx::Result<Option<i64>> {
        self.try_get(column)
    }

    fn text(&self, column: &str) -> sqlx::Result<String> {
        self.try_get(column)
    }

    fn text_or_null(&self, column: &str) -> sqlx::Result<Option<String>> {
        self.try_get(column)
    }

    fn seconds_or_null(&self, column: &str) -> sqlx::Result<Option<Duration>> {
        let seconds: Option<f64> = self.try_get(column)?;
        seconds.map(Duration::try_from_secs_f64).transpose().map_err(|error| bad(column, error))
    }
}

/// The one row of a query. It is read to its end, not to its first row: on Galera a transaction may be aborted between the
/// two, and whoever does not read that goes on without the locks it thinks it has.
pub(super) fn one(mut rows: Vec<AnyRow>) -> sqlx::Result<AnyRow> {
    rows.pop().ok_or_else(|| sqlx::Error::Protocol("no row where there is always one".to_owned()))
}

fn instant(column: &str, micros: i64) -> sqlx::Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|error| bad(column, error))
}

pub(super) fn bad(column: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: error.into() }
}

/// The instant that a query answers alone.
pub(super) fn first_instant(row: &AnyRow) -> sqlx::Result<Timestamp> {
    instant("now", row.try_get(0)?)
}

/// A whole microsecond count for a statement.
pub(super) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn task(row: &AnyRow, payload: Option<String>) -> sqlx::Result<Task> {
    Ok(Task {
        id: row.int("id")?,
        kind: row.text("kind")?,
        semaphore: row.text("semaphore")?,
        biz_key: row.text_or_null("biz_key")?,
        payload,
        priority: priority(row)?,
        state: row.word::<State>("state")?,
        run_at: row.instant("run_at")?,
        claim_no: row.int("claim_no")?,
        attempts: row.count("attempts")?,
        max_attempts: row.count_or_null("max_attempts")?,
        on_abandon: row.word_or_null("on_abandon")?,
        timeout: row.seconds_or_null("timeout")?,
        consumer: row.text_or_null("consumer")?,
        until: row.instant_or_null("until")?,
        created_at: row.instant("created_at")?,
        started_at: row.instant_or_null("started_at")?,
        finished_at: row.instant_or_null("finished_at")?,
        result: row.text_or_null("result")?,
        error: row.text_or_null("error")?,
        source: row.text("source")?,
        aged: row.count("aged")?,
        expires_at: row.instant_or_null("expires_at")?,
    })
}

fn priority(row: &AnyRow) -> sqlx::Result<i32> {
    row.int("priority")?.try_into().map_err(|error| bad("priority", error))
}

pub(super) fn job(row: &AnyRow) -> sqlx::Result<NewJob> {
    let name = row.text("name")?;
    let template = row.text("key_template")?;
    Ok(NewJob {
        key_template: KeyTemplate::parse(&template, &name).map_err(|error| bad("key_template", error))?,
        name,
        task: NewTask {
            kind: row.text("kind")?,
            payload: row.text("payload")?,
            priority: priority(row)?,
            timeout: row.seconds_or_null("timeout")?,
            max_attempts: row.count_or_null("max_attempts")?,
            on_abandon: row.word_or_null("on_abandon")?,
            semaphore: Some(row.text("semaphore")?),
            ..NewTask::default()
        },
        misfire: row.misfire()?,
        overlap: row.word("overlap")?,
    })
}

pub(super) fn trigger(row: &AnyRow) -> sqlx::Result<Trigger> {
    Ok(Trigger {
        id: row.int("id")?,
        job: row.text("job")?,
        when: when(row)?,
        paused: row.int("paused")? != 0,
        next_fire_at: row.instant_or_null("next_fire_at")?,
        waits_for: row.int_or_null("waits_for")?,
    })
}

/// The inner error is that of a person who wrote to the table.
fn when(row: &AnyRow) -> sqlx::Result<Result<When, BadSchedule>> {
    let every = row.seconds_or_null("every")?.unwrap_or_default();
    let (start, end) = (row.instant("start_at")?, row.instant_or_null("end_at")?);
    let plan = match row.text("kind")?.as_str() {
        "cron" => {
            let dialect = row.word_or_null("dialect")?.unwrap_or(CronDialect::Unix);
            Cron::parse(&row.text_or_null("expression")?.unwrap_or_default(), dialect).map(Plan::Cron)
        }
        "interval" => Ok(Plan::Interval(every)),
        "fixed_delay" => Ok(Plan::FixedDelay(every)),
        _ => Ok(Plan::Once),
    };
    let zone = When::zone(&row.text("zone")?);
    Ok(plan.and_then(|plan| zone.map(|zone| When { plan, zone, start, end })))
}
