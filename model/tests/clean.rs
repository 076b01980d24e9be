//! Without a fault, every state of every small fleet keeps every promise, and the interesting things do happen.

use model::promise::REACHABLE;
use model::scenes;
use stateright::{Checker, Model};

#[test]
fn every_promise_holds_in_every_state() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, fleet) in scenes::clean() {
        let checked = fleet.checker().threads(2).spawn_bfs().join();
        assert!(checked.is_done());
        for (promise, path) in checked.discoveries() {
            assert!(
                REACHABLE.contains(&promise),
                "{name}: {promise}
{:#?}",
                path.into_actions()
            );
            seen.insert(promise);
        }
    }
    for must in REACHABLE {
        assert!(seen.contains(must), "never: {must}");
    }
}
