//! Worlds that differ only in names are one state.
//!
//! Processes are alike, tasks are alike (whichever is due first may be claimed first), and ids are only compared. So the
//! names may be dealt out anew: over every order of processes and tasks, with ids in the order of their appearance, one
//! world is taken for all. Steps and promises do not look at names, so nothing is missed; only a trace would be hard to
//! read, as names change from step to step. Hence it is switched off where a counterexample is expected.

use std::hash::{Hash, Hasher};

use crate::store::name;
use crate::world::{Attempt, Id, Job, Lease, World};

/// The one world that stands for all that differ from this in names only.
pub(crate) fn representative(world: &World) -> World {
    let tasks = orders(world.tasks.len());
    let processes = orders(world.processes.len());
    let all = tasks.iter().flat_map(|tasks| processes.iter().map(move |processes| (tasks, processes)));
    let named = all.map(|(tasks, processes)| named(world, tasks, processes));
    named.min_by_key(fingerprint).unwrap_or_else(|| world.clone())
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = Quick(0);
    world.hash(&mut hasher);
    hasher.finish()
}

/// Only chooses among a handful of worlds: two that collide are merely not taken for one.
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Every order of so few things.
fn orders(n: usize) -> Vec<Vec<usize>> {
    match n {
        0 => vec![Vec::new()],
        _ => orders(n - 1)
            .into_iter()
            .flat_map(|order| {
                (0..n).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, n - 1);
                    order
                })
            })
            .collect(),
    }
}

/// The same world with its tasks and processes in this order. An id that nothing refers to might as well be gone.
fn named(world: &World, tasks: &[usize], processes: &[usize]) -> World {
    let mut new = world.clone();
    new.tasks = tasks.iter().map(|task| world.tasks[*task]).collect();
    new.processes = processes.iter().map(|process| world.processes[*process].clone()).collect();

    let task =
        |old: u8| tasks.iter().zip(0u8..).find(|(task, _)| **task == usize::from(old)).map_or(old, |it| it.1);
    each_attempt(&mut new, |attempt| attempt.task = task(attempt.task));

    let mut seen: Vec<Id> = Vec::new();
    each_id(&mut new, |id| {
        let at = seen.iter().position(|seen| seen == id).unwrap_or_else(|| {
            seen.push(*id);
            seen.len() - 1
        });
        *id = name(at);
    });
    let leases = seen.iter().map(|id| world.leases[usize::from(*id)]);
    new.leases = leases.chain(std::iter::repeat(Lease::Gone)).take(world.leases.len()).collect();
    new.tidy();
    new
}

fn each_attempt(world: &mut World, mut rename: impl FnMut(&mut Attempt)) {
    world.coolings.iter_mut().for_each(|it| rename(&mut it.attempt));
    world.calls.iter_mut().for_each(|it| rename(&mut it.attempt));
    world.strays.iter_mut().flat_map(|it| &mut it.ended).for_each(|it| rename(&mut it.0));
    for process in &mut world.processes {
        process.slots.iter_mut().for_each(|it| rename(&mut it.attempt));
        if let Job::Claimed(_, claims, _) = &mut process.job {
            claims.iter_mut().for_each(&mut rename);
        }
    }
}

fn each_id(world: &mut World, mut rename: impl FnMut(&mut Id)) {
    for process in &mut world.processes {
        process.id.iter_mut().for_each(&mut rename);
        process.slots.iter_mut().for_each(|it| rename(&mut it.owner));
        match &mut process.job {
            Job::Idle => {}
            Job::Halfway(id, _) | Job::Claimed(id, _, _) => rename(id),
        }
    }
    world.tasks.iter_mut().filter_map(|it| it.owner.as_mut()).for_each(&mut rename);
    world.strays.iter_mut().for_each(|it| rename(&mut it.id));
}
