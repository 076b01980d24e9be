//! The contract suite's one macro.

/// Makes each named `async fn(Db)` a test per database: `claim::sqlite::fewer_tasks_than_permits`. A case that is
/// missing from the list is dead code, and so a compile error in CI. `empty:` starts without a schema.
macro_rules! contract {
    (empty: $($name:ident,)*) => { contract!(@each (no schema) $($name,)*); };
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
    (@open (migrated) $database:ident) => { crate::support::Db::$database().await.migrated().await };
}
