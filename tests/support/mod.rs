//! What tests stand on. Knows nothing of the tests that use it.

#[macro_use]
mod contract;
mod consumer;
mod db;
mod dialect;
pub(crate) mod site;

pub(crate) use loadtest::servers::until;

pub(crate) use consumer::{Consumer, ended, late, policy};
pub(crate) use db::{Db, Held, LEASE, ids, registration, upkeep};
