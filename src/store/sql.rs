//! Every statement, once per database: `sql/<database>/<name>.sql` becomes `sql.<name>`. A file that is missing for one
//! database is a compile error.

macro_rules! statements {
    ($($name:ident)* ; mysql only: $($mysql:ident)* ; postgres only: $($postgres:ident)*) => {
        /// The statements of one database.
        #[derive(Debug)]
        pub(crate) struct Sql {
            pub(super) dialect: Dialect,
            /// Migrations in order; the first makes schema version 1.
            pub(super) migrations: &'static [&'static str],
            $(pub(super) $name: &'static str,)*
            $(pub(super) $mysql: &'static str,)*
            $(pub(super) $postgres: &'static str,)*
        }

        #[cfg(feature = "sqlite")]
        static SQLITE: Sql = statements!(@set "sqlite" Sqlite [$($name)*] [$($mysql)* $($postgres)*]);
        #[cfg(feature = "postgres")]
        static POSTGRES: Sql = statements!(@set "postgres" Postgres [$($name)* $($postgres)*] [$($mysql)*]);
        #[cfg(feature = "mysql")]
        static MYSQL: Sql = statements!(@set "mysql" Mysql [$($name)* $($mysql)*] [$($postgres)*]);
    };
    (@set $folder:literal $dialect:ident [$($name:ident)*] [$($empty:ident)*]) => {
        Sql {
            dialect: Dialect::$dialect,
            migrations: &[
                include_str!(concat!("../../sql/", $folder, "/migrations/0001_core.sql")),
                include_str!(concat!("../../sql/", $folder, "/migrations/0002_schedules.sql")),
                include_str!(concat!("../../sql/", $folder, "/migrations/0003_life.sql")),
                include_str!(concat!("../../sql/", $folder, "/migrations/0004_dependencies.sql")),
                include_str!(concat!("../../sql/", $folder, "/migrations/0005_retention.sql")),
            ],
            $($name: include_str!(concat!("../../sql/", $folder, "/", stringify!($name), ".sql")),)*
            $($empty: "",)*
        }
    };
}

statements! {
    server session limits writable begin migrate_lock migrate_unlock installed schema clock
    enqueue keyed
    lock_tasks expect depend waiters tell close told untold strays recount family parents revivable open_edges block
    look promote lock pick mark permits own ended_by log cool settle
    register beat running leave late own_cooling
    check expired fence abandoned cooled coolings released uncool counted drift repair longest impossible retired
    semaphores holders consumers set_max add_semaphore task list states attempts actions act standing cools_until
    cancel revive evidence accept sweep
    schedules due_triggers ended_runs job_lock live_run advance arm wait_for ran note_instant overlapped
    retryable pauses pause resume trip still_down probe probing found_up lapsed lapse level age
    jobs triggers instants add_job add_trigger set_trigger remove_job remove_trigger
    recent ahead fired_by
    finished unneeded surplus old_instants old_actions forget_attempts forget_actions_of forget_tasks forget_instants
    forget_actions forget_limits
    doctor_settings doctor_status doctor_objects doctor_rights doctor_backend
    ; mysql only: collect enqueued collected held
    ; postgres only: hand_over notify
}

/// Which database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The embedded default: one file, one host.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

impl Dialect {
    /// By the scheme of a URL.
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }

    /// Its statements; `None` where this binary was built without them.
    #[allow(clippy::unnecessary_wraps)] // a build may leave databases out
    pub(super) fn sql(self) -> Option<&'static Sql> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => Some(&SQLITE),
            #[cfg(feature = "postgres")]
            Self::Postgres => Some(&POSTGRES),
            #[cfg(feature = "mysql")]
            Self::Mysql => Some(&MYSQL),
            #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "mysql")))]
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_in_any_encoding_takes_the_schema() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
            assert!(dialect.sql().unwrap().migrations.iter().all(|text| text.is_ascii()), "{dialect:?}");
        }
    }
}
