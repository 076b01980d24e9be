//! What no client of ours does: a person's connection beside the fleet, which guards the counter, kills the connections
//! of others, and balances the books.

use std::sync::Arc;
use std::time::Duration;

use permitq::store::{Database, Dialect};
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Executor};
use tokio::time::{Instant, sleep};

use super::tally::Tally;
use super::{Error, KIND};

pub(super) struct Side {
    dialect: Dialect,
    conn: AnyConnection,
}

impl Side {
    pub(super) async fn open(database: &Database, url: &str) -> Result<Self, Error> {
        let url =
            database.file().map_or(url.to_owned(), |file| format!("sqlite:{}?mode=rwc", file.display()));
        let options: AnyConnectOptions = url.parse()?;
        let mut conn = options.disable_statement_logging().connect().await?;
        if database.dialect() == Dialect::Sqlite {
            conn.execute("PRAGMA busy_timeout = 10000").await?;
        }
        Ok(Self { dialect: database.dialect(), conn })
    }

    async fn number(&mut self, query: &str) -> Result<i64, sqlx::Error> {
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut self.conn).await
    }

    async fn execute(&mut self, statement: &str) -> Result<(), sqlx::Error> {
        self.conn.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await.map(drop)
    }

    /// Nobody's tasks are to be cancelled by a torture. A database without tables has none.
    pub(super) async fn refuse_foreign_tasks(&mut self) -> Result<(), Error> {
        let query = format!("SELECT count(*) FROM permitq_task WHERE source <> '{KIND}'");
        match self.number(&query).await {
            Ok(foreign) if foreign > 0 => {
                Err(format!("this database holds {foreign} tasks of others; name one that may be tortured")
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Whatever lets the counter grow beyond the cap fails, and is seen.
    pub(super) async fn guard(&mut self, on: bool) -> Result<(), Error> {
        let statements = match (self.dialect, on) {
            (Dialect::Sqlite, true) => {
                "DROP TRIGGER IF EXISTS torture_cap;
                 CREATE TRIGGER torture_cap BEFORE UPDATE OF in_use ON permitq_semaphore
                 WHEN NEW.in_use > OLD.in_use AND NEW.in_use > NEW.max_permits
                 BEGIN SELECT RAISE(ABORT, 'torture: over the cap'); END"
            }
            (Dialect::Postgres, true) => {
                "CREATE OR REPLACE FUNCTION torture_cap() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE 'torture: over the cap'; END $$;
                 DROP TRIGGER IF EXISTS torture_cap ON permitq_semaphore;
                 CREATE TRIGGER torture_cap BEFORE UPDATE OF in_use ON permitq_semaphore FOR EACH ROW
                 WHEN (NEW.in_use > OLD.in_use AND NEW.in_use > NEW.max_permits)
                 EXECUTE FUNCTION torture_cap()"
            }
            (Dialect::Postgres, false) => "DROP FUNCTION torture_cap CASCADE",
            (Dialect::Mysql, true) => {
                "DROP TRIGGER IF EXISTS torture_cap;
                 CREATE TRIGGER torture_cap BEFORE UPDATE ON permitq_semaphore FOR EACH ROW
                 IF NEW.in_use > OLD.in_use AND NEW.in_use > NEW.max_permits
                 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'torture: over the cap'; END IF"
            }
            (Dialect::Sqlite | Dialect::Mysql, false) => "DROP TRIGGER torture_cap",
        };
        Ok(self.execute(statements).await?)
    }

    pub(super) async fn tasks(&mut self) -> Result<i64, Error> {
        Ok(self.number("SELECT count(*) FROM permitq_task").await?)
    }

    /// What the log and the tasks say differently, in words.
    pub(super) async fn unbalanced(&mut self) -> Result<Option<String>, Error> {
        let tasks = self.number("SELECT count(*) FROM permitq_task WHERE state = 'succeeded'").await?;
        let log = self.number("SELECT count(*) FROM permitq_attempt WHERE outcome = 'succeeded'").await?;
        let open =
            self.number("SELECT count(*) FROM permitq_attempt WHERE permit_released_at IS NULL").await?;
        Ok(if tasks != log {
            Some(format!("{tasks} tasks succeeded, but {log} attempts"))
        } else if open > 0 {
            Some(format!("no permit is in use, but {open} attempts still hold one in the log"))
        } else {
            None
        })
    }

    /// On servers: some connection of the fleet, every now and then.
    pub(super) async fn kill_now_and_then(mut self, tally: Arc<Tally>, end: Instant) {
        while Instant::now() < end && self.dialect != Dialect::Sqlite {
            sleep(Duration::from_millis(60)).await;
            match self.kill().await {
                Ok(true) => tally.count("connections killed"),
                Ok(false) => {}
                Err(_) => tally.count("kills refused"),
            }
        }
    }

    async fn kill(&mut self) -> Result<bool, sqlx::Error> {
        if self.dialect == Dialect::Postgres {
            let query = "SELECT count(pg_terminate_backend(pid)) FROM (
                             SELECT pid FROM pg_stat_activity
                              WHERE datname = current_database() AND application_name = 'permitq'
                              ORDER BY random() LIMIT 1) p";
            return Ok(self.number(query).await? == 1);
        }
        let query = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist
                      WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info IS NOT NULL
                      ORDER BY rand() LIMIT 1";
        let Some(id) = sqlx::query_scalar::<_, i64>(query).fetch_optional(&mut self.conn).await? else {
            return Ok(false);
        };
        // It may have ended since it was listed.
        Ok(self.execute(&format!("KILL {id}")).await.is_ok())
    }
}
