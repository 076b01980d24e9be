//! The little that hand-written test SQL must say in each database's own words.

use std::time::Duration;

use permitq::model::State;
use permitq::store::Dialect;

/// The transition table of [`State::may_become`] as a trigger that refuses every other move.
pub(crate) fn moves(dialect: Dialect) -> String {
    let mut allowed = Vec::new();
    for from in State::ALL {
        allowed
            .extend(State::ALL.iter().filter(|to| from.may_become(**to)).map(|to| format!("'{from} {to}'")));
    }
    let allowed = allowed.join(", ");
    match dialect {
        // SQLite cannot change a row before it is inserted, so the insert's own trigger moves a future task on.
        Dialect::Sqlite => format!(
            "CREATE TRIGGER test_moves BEFORE UPDATE OF state ON permitq_task
             WHEN OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state NOT IN ({allowed})
              AND NOT (OLD.state || ' ' || NEW.state = 'pending scheduled' AND OLD.claim_no = 0
                       AND OLD.run_at > (julianday('now') - 2440587.5) * 86400000000)
             BEGIN SELECT RAISE(ABORT, 'a move outside the transition table'); END"
        ),
        Dialect::Postgres => format!(
            "CREATE FUNCTION test_moves() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE 'a move outside the transition table: % to %', OLD.state, NEW.state; END $$;
             CREATE TRIGGER test_moves BEFORE UPDATE OF state ON permitq_task FOR EACH ROW
             WHEN (OLD.state <> NEW.state AND OLD.state || ' ' || NEW.state NOT IN ({allowed}))
             EXECUTE FUNCTION test_moves()"
        ),
        Dialect::Mysql => format!(
            "CREATE TRIGGER test_moves BEFORE UPDATE ON permitq_task FOR EACH ROW
             IF OLD.state <> NEW.state AND CONCAT(OLD.state, ' ', NEW.state) NOT IN ({allowed})
             THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a move outside the transition table'; END IF"
        ),
    }
}

/// A trigger that fails this event on this table.
pub(crate) fn fail_on(dialect: Dialect, event: &str, table: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!(
            "CREATE TRIGGER test_fail_{table} BEFORE {event} ON {table}
             BEGIN SELECT RAISE(ABORT, 'dies here'); END"
        ),
        Dialect::Postgres => format!(
            "CREATE OR REPLACE FUNCTION test_fail() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE 'dies here'; END $$;
             CREATE TRIGGER test_fail_{table} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION test_fail()"
        ),
        Dialect::Mysql => format!(
            "CREATE TRIGGER test_fail_{table} BEFORE {event} ON {table} FOR EACH ROW
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dies here'"
        ),
    }
}

pub(crate) fn mend(dialect: Dialect, table: &str) -> String {
    match dialect {
        Dialect::Sqlite | Dialect::Mysql => format!("DROP TRIGGER test_fail_{table}"),
        Dialect::Postgres => format!("DROP TRIGGER test_fail_{table} ON {table}"),
    }
}

/// An instant column, earlier.
pub(crate) fn earlier(dialect: Dialect, column: &str, by: Duration) -> String {
    match dialect {
        Dialect::Sqlite => format!("{column} - {}", by.as_micros()),
        Dialect::Postgres => format!("{column} - interval '{} microseconds'", by.as_micros()),
        Dialect::Mysql => format!("{column} - INTERVAL {} MICROSECOND", by.as_micros()),
    }
}

/// A transaction that writes.
pub(crate) fn begin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::Postgres | Dialect::Mysql => "BEGIN",
    }
}

/// A number that changes with every committed change.
pub(crate) fn changes(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "SELECT data_version FROM pragma_data_version",
        Dialect::Postgres => {
            "SELECT CAST((SELECT coalesce(sum(CAST(CAST(xmin AS text) AS bigint)), 0) FROM permitq_task)
                       + (SELECT sum(CAST(CAST(xmin AS text) AS bigint)) FROM permitq_semaphore)
                       + (SELECT count(*) FROM permitq_attempt) + (SELECT count(*) FROM permitq_cooling) AS bigint)"
        }
        Dialect::Mysql => {
            "SELECT CAST((SELECT coalesce(sum(claim_no + attempts + crc32(state)), 0) FROM permitq_task)
                       + (SELECT sum(in_use) FROM permitq_semaphore)
                       + (SELECT count(*) FROM permitq_attempt) + (SELECT count(*) FROM permitq_cooling) AS SIGNED)"
        }
    }
}
