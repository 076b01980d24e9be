//! The fleets that are checked.

use permitq::model::OnAbandon;

use crate::fleet::Fleet;

/// Fleets without a fault, each with what it is for. Every state of each keeps every promise.
pub fn clean() -> Vec<(&'static str, Fleet)> {
    let two = |max| Fleet { tasks: 2, claims: 1, max_attempts: 1, way: 0, ..Fleet::small(max) };
    let one = |on_abandon| Fleet { on_abandon, ..Fleet::small(1) };
    vec![
        ("two tasks, cap 1", two(1)),
        ("two tasks, cap 2", two(2)),
        ("one task, transactions outlive clients", Fleet { strays: 1, way: 0, ..Fleet::small(1) }),
        ("one task, a process comes back, three claims", Fleet { ids: 3, claims: 3, ..Fleet::small(1) }),
        ("one task, leases timed", Fleet { lease: Some(1), ..Fleet::small(1) }),
        ("one task, two slots, two attempts at once", Fleet { slots: 2, ..Fleet::small(2) }),
        ("one task, after cooling", one(OnAbandon::RetryAfterCooling)),
        ("one task, at most once", one(OnAbandon::Fail)),
        ("two tasks, cap lowered from 2 to 0", Fleet { lowest: 0, ..two(2) }),
        ("one task, cancelled while it runs", Fleet { cancels: true, ..Fleet::small(1) }),
    ]
}

/// The same for a longer while.
pub fn large() -> Vec<(&'static str, Fleet)> {
    let two = |max| Fleet { tasks: 2, way: 0, ..Fleet::small(max) };
    vec![
        (
            "two tasks, lowered and cancelled",
            Fleet { lowest: 0, cancels: true, claims: 1, max_attempts: 1, ..two(2) },
        ),
        ("two tasks, two attempts each, cap 1", two(1)),
    ]
}
