//! The contract suite's one macro.

/// Makes each named `async fn(Db)` a test per database: `claim::sqlite::fewer_tasks_than_permits`. A case that is
/// missing from the list is dead code, and so a compile error in CI. `empty:` starts without a schema, `crash:` on a
/// server whose commits are on the disk when they are acknowledged.
macro_rules! contract {
    (empty: $($name:ident,)*) => { contract!(@each (no schema) $($name,)*); };
    (crash: $($name:ident,)*) => { contract!(@each (durable) $($name,)*); };
    ($($name:ident,)*) => { contract!(@each (migrated) $($name,)*); };
    (@each $schema:tt $($name:ident,)*) => {
        contract!(@on sqlite $schema $($name,)*);
        contract!(@on postgres $schema $($name,)*);
        contract!(@on mariadb $schema $($name,)*);
    };
    (@on $database:ident $schema:tt $($name:ident,)*) => {
        mod $database {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(contract!(@open $schema $database)).await;
            })*
        }
    };
    (@open (no schema) $database:ident) => { crate::support::Db::$database().await };
    (@open (durable) sqlite) => { contract!(@open (migrated) sqlite) };
    (@open (durable) postgres) => { contract!(@open (migrated) durable_postgres) };
    (@open (durable) mariadb) => { contract!(@open (migrated) durable_mariadb) };
    (@open (migrated) $database:ident) => { crate::support::Db::$database().await.migrated().await };
}

/// The same for what only servers can suffer, all of them durable. `alone:` gives the test a server of its own, which it may hurt:
/// `async fn(Server)`.
macro_rules! servers {
    (alone: $($name:ident,)*) => {
        servers!(@alone postgres $($name,)*);
        servers!(@alone mariadb $($name,)*);
    };
    ($($name:ident,)*) => {
        contract!(@on postgres (durable) $($name,)*);
        contract!(@on mariadb (durable) $($name,)*);
    };
    (@alone $database:ident $($name:ident,)*) => {
        mod $database {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let start = || loadtest::servers::Server::$database(true);
                super::$name(tokio::task::spawn_blocking(start).await.unwrap()).await;
            })*
        }
    };
}
