//! What tests stand on. Knows nothing of the tests that use it.

#[macro_use]
mod contract;
mod consumer;
mod db;
mod dialect;
pub(crate) mod servers;
pub(crate) mod site;

use std::thread;
use std::time::Duration;

use permitq::clock::Clock;

pub(crate) use consumer::{Consumer, ended, policy};
pub(crate) use db::{Db, Held, LEASE, ids, registration};

/// Much longer than anything here takes, on a busy machine too.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Waits for a condition, and fails the test where it does not come.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let clock = Clock::default();
    let start = clock.now();
    while !condition() {
        assert!(clock.now().since(start) < DEADLINE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
