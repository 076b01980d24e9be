//! P12, flat cost: what each statement of `sql/` reads, in rows and not in seconds, in a database with a million finished,
//! a hundred thousand delayed and a hundred thousand pending tasks.
//!
//! The texts come from the files, the parameters are those the store binds, and the session is `session.sql`. Each runs in a
//! transaction that is rolled back. A statement that is in no list here fails [`every_statement_is_accounted_for`].

mod big;
mod cases;
mod meter;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use permitq::store::Dialect;

use self::cases::{FREE, UNREAD, cases};
use self::meter::Meter;
use crate::support::Db;

contract! {
    every_statement_reads_a_bounded_number_of_rows,
}

const FOLDERS: [(Dialect, &str); 3] =
    [(Dialect::Sqlite, "sqlite"), (Dialect::Postgres, "postgres"), (Dialect::Mysql, "mysql")];

/// Twice on PostgreSQL: with no statistics yet, and with fresh ones.
async fn every_statement_reads_a_bounded_number_of_rows(db: Db) {
    let dialect = db.database.dialect();
    let clock = permitq::clock::Clock::default();
    let start = clock.now();
    big::fill(&db).await;
    println!("{dialect:?}: filled in {:.1?}", clock.now().since(start));
    let mut meter = Meter::new(&db, &text(dialect, "session")).await;
    let mut faults = measure(&mut meter, dialect, "").await;
    if dialect == Dialect::Postgres {
        db.sql("ANALYZE").await;
        faults.extend(measure(&mut meter, dialect, " after ANALYZE").await);
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

async fn measure(meter: &mut Meter, dialect: Dialect, when: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for case in cases(dialect) {
        let read = meter.read(&text(dialect, case.statement), &case.binds, case.statement != "list").await;
        println!("{dialect:?}{when}: {} {read}", case.name());
        if read.rows > case.most || read.pages > case.most * 4 + 200 {
            faults.push(format!(
                "{dialect:?}{when}: {} {read}; at most {}\n{}",
                case.name(),
                case.most,
                read.plan
            ));
        }
    }
    faults
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(name)
}

fn text(dialect: Dialect, statement: &str) -> String {
    let (_, name) = FOLDERS.iter().find(|(of, _)| *of == dialect).unwrap();
    let file = folder(name).join(format!("{statement}.sql"));
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn every_statement_is_accounted_for() {
    for (dialect, name) in FOLDERS {
        let files: BTreeSet<String> = fs::read_dir(folder(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let measured = cases(dialect).into_iter().map(|case| case.statement.to_owned());
        let exempt = FREE.iter().chain(&UNREAD).map(|(statement, _)| (*statement).to_owned());
        let known: BTreeSet<String> = measured.chain(exempt).collect();
        let missing: Vec<_> = files.difference(&known).collect();
        assert!(missing.is_empty(), "sql/{name}: measured by no case: {missing:?}");
        // What one database alone has is in the lists once.
        let gone: Vec<_> = known.difference(&files).filter(|name| !elsewhere(name)).collect();
        assert!(gone.is_empty(), "sql/{name}: no such file: {gone:?}");
    }
}

fn elsewhere(statement: &str) -> bool {
    FOLDERS.iter().any(|(_, name)| folder(name).join(format!("{statement}.sql")).exists())
}
