//! What a consumer serves: kinds, their semaphores, limits and handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::downstream::Handler;
use crate::model::Limits;
use crate::store::{Policy, SemaphoreLook};

/// Who serves every kind that has no service of its own.
const REST: &str = "default";

/// How a kind is served.
#[derive(Clone)]
pub struct Service {
    /// Whose permits its calls need. A downstream belongs to one semaphore, or it would have two caps.
    pub semaphore: String,
    /// How long a call may take, and what follows when it does not end well.
    pub limits: Limits,
    /// Who makes the call.
    pub handler: Arc<dyn Handler>,
}

/// The services of a consumer, by kind.
#[derive(Clone, Default)]
pub struct Services {
    named: BTreeMap<String, Service>,
    rest: Option<Service>,
}

impl Services {
    /// Serves one kind.
    pub fn add(&mut self, kind: impl Into<String>, service: Service) {
        self.named.insert(kind.into(), service);
    }

    /// Serves every kind that has no service of its own.
    pub fn add_rest(&mut self, service: Service) {
        self.rest = Some(service);
    }

    /// Who serves this kind.
    pub fn of(&self, kind: &str) -> Option<&Service> {
        self.named.get(kind).or(self.rest.as_ref())
    }

    /// The downstream that serves this kind, by its name in the configuration.
    pub fn downstream<'a>(&self, kind: &'a str) -> &'a str {
        if self.named.contains_key(kind) { kind } else { REST }
    }

    /// The semaphores whose permits are needed.
    pub fn semaphores(&self) -> Vec<String> {
        let names: BTreeSet<_> =
            self.named.values().chain(&self.rest).map(|service| &service.semaphore).collect();
        names.into_iter().cloned().collect()
    }

    /// The kinds with due tasks under this semaphore that are ours to claim, paused or not.
    pub fn policies(&self, look: &SemaphoreLook) -> Vec<Policy> {
        let ours = look.kinds.iter().filter_map(|kind| {
            let service = self.of(kind).filter(|service| service.semaphore == look.name)?;
            Some(Policy {
                kind: kind.clone(),
                hold: service.limits.hold(),
                max_attempts: service.limits.retry.max_attempts,
                on_abandon: service.limits.on_abandon,
                downstream: self.downstream(kind).to_owned(),
            })
        });
        ours.collect()
    }

    /// The same for people and for `permitq_consumer.serves`: a JSON object from kind, or `*` for the rest, to semaphore.
    pub fn describe(&self) -> String {
        let named = self.named.iter().map(|(kind, service)| (kind.as_str(), &service.semaphore));
        let rest = self.rest.iter().map(|service| ("*", &service.semaphore));
        serde_json::json!(named.chain(rest).collect::<BTreeMap<_, _>>()).to_string()
    }
}
