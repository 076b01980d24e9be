//! What `permitq doctor` looks at: facts about the server, the session and the schema. It judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Executor, Row};
use tokio::time::timeout;

use super::error::{is_denial, words};
use super::unit::{How, Tx, Unit};
use super::{Database, Dialect, Error, Result, Server, Store};

/// What a look at the database found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Settings in force and how the server stands: the server's own names in lower case, and its own words.
    pub settings: BTreeMap<String, String>,
    /// What the migrations made and is not there (any more): `index permitq_task_ready`.
    pub missing: Vec<String>,
    /// Tables that are not what the migrations made: `table permitq_task is MyISAM latin1_swedish_ci`.
    pub altered: Vec<String>,
    /// Whether this user can see triggers at all.
    pub sees_triggers: bool,
    /// Rights of a consumer that this user lacks: `INSERT on permitq_task`.
    pub denied: Vec<String>,
}

impl Store {
    /// What answers at the other end.
    pub async fn server(&mut self) -> Result<Server> {
        self.run(&ReadServer).await
    }

    /// Settings and standing of the server, in force in our sessions.
    pub async fn settings(&mut self) -> Result<BTreeMap<String, String>> {
        self.run(&Settings).await
    }

    /// Everything, of a database with our schema.
    pub async fn facts(&mut self) -> Result<Facts> {
        self.run(&Look).await
    }

    /// Begins a transaction that writes, and ends it: on a file, that needs every right there is.
    pub async fn can_write(&mut self) -> Result<()> {
        self.run(&Nothing).await
    }
}

impl Database {
    /// Whether something between here and the server gives our statements to sessions as it likes. Two clients tell it: the
    /// server has one session for each, and the first keeps its own while the second is in a transaction.
    pub async fn is_pooled(&self) -> Result<bool> {
        const UNIT: &str = "look for a pooler";
        if self.dialect() == Dialect::Sqlite {
            return Ok(false);
        }
        // Without our session: what is prepared or set may get lost already.
        let options =
            self.options(self.url()).map_err(|reason| Error::Unreachable { url: self.masked(), reason })?;
        let sessions = async {
            let (mut first, mut second) = (options.connect().await?, options.connect().await?);
            let before = self.backend(&mut first).await?;
            second.execute(self.sql.begin).await?;
            let other = self.backend(&mut second).await?;
            // A pool of one session makes us wait for ourselves.
            let after = timeout(Duration::from_secs(1), self.backend(&mut first)).await;
            let after = after.ok().transpose()?;
            Ok::<_, sqlx::Error>(before == other || after != Some(before))
        };
        match timeout(self.limit, sessions).await {
            Ok(pooled) => pooled.map_err(|source| Error::Database { unit: UNIT, source }),
            Err(_) => Err(Error::Timeout { unit: UNIT, limit: self.limit }),
        }
    }

    async fn backend(&self, conn: &mut AnyConnection) -> sqlx::Result<i64> {
        // Without preparing it: poolers lose what was prepared.
        conn.fetch_one(sqlx::raw_sql(self.sql.doctor_backend)).await?.try_get(0)
    }
}

struct ReadServer;

impl Unit for ReadServer {
    type Answer = Server;
    const NAME: &'static str = "ask for the server's version";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Server> {
        let row = tx.conn.fetch_one(sqlx::raw_sql(tx.sql.server)).await?;
        Server::read(tx.sql.dialect, row.try_get(0)?).map_err(sqlx::Error::Protocol)
    }
}

struct Settings;

impl Unit for Settings {
    type Answer = BTreeMap<String, String>;
    const NAME: &'static str = "read the server's settings";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<BTreeMap<String, String>> {
        let mut settings = BTreeMap::new();
        for statement in [tx.sql.doctor_settings, tx.sql.doctor_status] {
            for row in tx.conn.fetch_all(sqlx::raw_sql(statement)).await? {
                let name: String = row.try_get(0)?;
                settings.insert(name.to_ascii_lowercase(), row.try_get(1)?);
            }
        }
        Ok(settings)
    }
}

struct Look;

impl Unit for Look {
    type Answer = Facts;
    const NAME: &'static str = "look at the schema";
    const HOW: How = How::Reading;

    async fn run(&self, tx: &mut Tx<'_>) -> sqlx::Result<Facts> {
        let rows = tx.conn.fetch_all(sqlx::raw_sql(tx.sql.doctor_objects)).await?;
        let there = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<BTreeSet<String>>>()?;
        let sees_triggers = there.iter().any(|object| object.starts_with("trigger "));
        let missing = made(tx.sql.dialect, tx.sql.migrations)
            .into_iter()
            .filter(|object| !there.contains(object))
            .filter(|object| sees_triggers || !object.starts_with("trigger "))
            .collect();
        let altered = there.iter().filter(|object| object.contains(" is ")).cloned().collect();
        let mut denied = Vec::new();
        for statement in statements(tx.sql.doctor_rights) {
            match tx.conn.execute(sqlx::raw_sql(AssertSqlSafe(statement.clone()))).await {
                Err(error) if is_denial(&error) => denied.push(right(&statement, &words(&error))),
                done => {
                    done?;
                }
            }
        }
        Ok(Facts { settings: Settings.run(tx).await?, missing, altered, sees_triggers, denied })
    }
}

struct Nothing;

impl Unit for Nothing {
    type Answer = ();
    const NAME: &'static str = "begin to write";

    async fn run(&self, _: &mut Tx<'_>) -> sqlx::Result<()> {
        Ok(())
    }
}

/// The statements of a file, without its comments.
fn statements(file: &str) -> Vec<String> {
    let text: Vec<_> = file.lines().filter(|line| !line.starts_with("--")).collect();
    text.join("\n").split(';').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

/// Which right planning this statement needs.
fn right(statement: &str, said: &str) -> String {
    let mut words = statement.split_whitespace().skip(1);
    match (words.next(), words.find(|word| word.starts_with("permitq_"))) {
        (Some(verb), Some(table)) => format!("{verb} on {table}"),
        _ => said.to_owned(),
    }
}

/// What the migrations make, in the words of `doctor_objects.sql`: tables, views, triggers, and every index with a name of
/// its own. A constraint's index goes with its table.
fn made(dialect: Dialect, migrations: &[&str]) -> BTreeSet<String> {
    let mut made = BTreeSet::new();
    let mut table = "";
    for line in migrations.iter().flat_map(|text| text.lines()) {
        let words: Vec<_> = line
            .split_whitespace()
            .filter(|word| !matches!(*word, "IF" | "NOT" | "EXISTS" | "OR" | "REPLACE" | "UNIQUE"))
            .collect();
        let (what, name) = match words[..] {
            ["CREATE", "TABLE", name, ..] => {
                table = name;
                ("table", name.to_owned())
            }
            ["ALTER", "TABLE", name, ..] => {
                table = name;
                continue;
            }
            ["CREATE", "INDEX", name, ..] => ("index", name.to_owned()),
            ["CREATE", "TRIGGER", name, ..] => ("trigger", name.to_owned()),
            ["CREATE", "VIEW", name, ..] => ("view", name.to_owned()),
            ["KEY", name, ..] | ["ADD", "KEY", name, ..] if dialect == Dialect::Mysql => {
                ("index", format!("{table}.{name}"))
            }
            ["DROP", what, name, ..] => {
                made.remove(&format!("{} {}", what.to_ascii_lowercase(), name.trim_end_matches(';')));
                continue;
            }
            _ => continue,
        };
        made.insert(format!("{what} {name}"));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_migrations_say_what_must_be_there() {
        for (dialect, ready) in [
            (Dialect::Sqlite, "index permitq_task_ready"),
            (Dialect::Postgres, "index permitq_task_ready"),
            (Dialect::Mysql, "index permitq_task.permitq_task_ready"),
        ] {
            let made = made(dialect, dialect.sql().unwrap().migrations);
            for object in
                [ready, "table permitq_action", "view permitq_permit", "trigger permitq_limit_first"]
            {
                assert!(made.contains(object), "{dialect:?}: no {object} in {made:?}");
            }
        }
        let later = ["CREATE INDEX a ON t (x);\nCREATE INDEX b ON t (y);", "DROP INDEX IF EXISTS a;"];
        assert_eq!(made(Dialect::Postgres, &later), ["index b".to_owned()].into());
    }

    #[test]
    fn a_right_is_named_by_what_needs_it() {
        let all = statements(Dialect::Postgres.sql().unwrap().doctor_rights);
        assert_eq!(all.len(), 43);
        let rights: Vec<_> = all.iter().map(|statement| right(statement, "?")).collect();
        assert!(rights.contains(&"INSERT on permitq_attempt".to_owned()), "{rights:?}");
        assert!(rights.contains(&"UPDATE on permitq_semaphore".to_owned()), "{rights:?}");
        assert!(statements("-- Nothing; here.\n").is_empty());
    }
}
