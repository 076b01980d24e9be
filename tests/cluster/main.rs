//! What is promised when the database itself is several servers, and one of them dies under load.

#[cfg(test)]
#[allow(dead_code, unused_imports, unused_macros)] // shared with the other test binary
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod galera;
#[cfg(test)]
mod load;
#[cfg(test)]
mod standby;
