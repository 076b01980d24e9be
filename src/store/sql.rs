//! Every statement, once per database: `sql/<database>/<name>.sql` becomes `sql.<name>`. A file that is missing for one
//! database is a compile error.

macro_rules! statements {
    ($($name:ident)*) => {
        /// The statements of one database.
        #[derive(Debug)]
        pub(crate) struct Sql {
            pub(super) dialect: Dialect,
            /// Migrations in order; the first makes schema version 1.
            pub(super) migrations: &'static [&'static str],
            $(pub(super) $name: &'static str,)*
        }

        #[cfg(feature = "sqlite")]
        static SQLITE: Sql = Sql {
            dialect: Dialect::Sqlite,
            migrations: &[include_str!("../../sql/sqlite/migrations/0001_core.sql")],
            $($name: include_str!(concat!("../../sql/sqlite/", stringify!($name), ".sql")),)*
        };
    };
}

statements! {
    session begin installed schema clock
    enqueue keyed
    look promote lock room pick mark permits own ended_by log cool settle
    register beat held running leave late own_cooling
    expired fence abandoned cooled released uncool counted drift repair longest impossible retired
    semaphores holders consumers set_max add_semaphore task list states attempts actions act standing cancel revive sweep
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
    pub(super) fn sql(self) -> Option<&'static Sql> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => Some(&SQLITE),
            _ => None,
        }
    }
}
