//! The promises, as properties of a state, of a step, or of what would happen from a state on.

use permitq::model::{OnAbandon, State};
use stateright::Property;

use crate::fleet::Fleet;
use crate::step::{Action, exchange};
use crate::store::count;
use crate::world::{Attempt, Exchange, Job, Lease, Phase, Process, Upkeep, World};

/// P1: the downstream never has more calls of ours than the cap, as it counts them.
pub const CAP: &str = "the downstream never has more calls than the cap";
/// P1, second half: nothing is claimed while more permits are in use than a lowered cap allows.
pub const LOWERED: &str = "a lowered cap is honoured, by hand-overs too";
/// P3: unless the task asks for it, no two calls of it overlap.
pub const NO_OVERLAP: &str = "no two calls of a task overlap unless it asks for that";
/// P4: a write under an old `claim_no` changes nothing and frees nobody else's permit.
pub const ONE_OWNER: &str = "only its owner ends an attempt and frees its permit";
/// P4, the owner's side: within its lease nobody is declared gone.
pub const LEASE: &str = "a lease in force is respected";
/// P2 and P5: after a crash the capacity is whole again in time, and every task is in a final state or waits.
pub const NO_LEAK: &str = "after a crash no permit leaks and no task is lost";
/// P5 for processes that only beat: a permit is held no longer than its bound, a lease and a pass.
pub const NO_HOARD: &str = "no permit is held for ever by a process that only beats";
/// P6: `in_use` is what is running and cooling, at every commit.
pub const CONSERVATION: &str = "in_use is running plus cooling";
/// Final states are final, and every move is one of the transition table.
pub const TABLE: &str = "tasks move along the transition table";
/// No task uses more attempts than it has.
pub const ATTEMPTS: &str = "attempts are bounded";

/// What must be reachable, or the promises would mean nothing.
pub const REACHABLE: [&str; 6] = [
    "every task succeeds",
    "a last attempt is lost",
    "a call outlives its owner",
    "the cap is used up by calls that nobody waits for",
    "a claim comes too late to be started",
    "a claim is lost to somebody else",
];

/// Every promise, and what must be reachable for them to mean anything.
pub(crate) fn all() -> Vec<Property<Fleet>> {
    vec![
        Property::always(CAP, |_, world: &World| count(world.calls.len()) <= world.allowed),
        Property::always(LOWERED, |_, world: &World| !world.broken.lowered),
        Property::always(NO_OVERLAP, |fleet: &Fleet, world: &World| {
            fleet.on_abandon == OnAbandon::Retry || !overlaps(world)
        }),
        Property::always(ONE_OWNER, |_, world: &World| !world.broken.owner),
        Property::always(LEASE, |_, world: &World| !world.broken.lease),
        Property::always(NO_LEAK, |fleet: &Fleet, world: &World| fleet.recovers(world)),
        Property::always(NO_HOARD, |fleet: &Fleet, world: &World| fleet.lets_go(world)),
        Property::always(CONSERVATION, |_, world: &World| count(world.counted()) == world.in_use),
        Property::always(TABLE, |_, world: &World| !world.broken.table),
        Property::always(ATTEMPTS, |fleet: &Fleet, world: &World| {
            world.tasks.iter().all(|task| u32::from(task.attempts) <= fleet.max_attempts)
        }),
        Property::sometimes(REACHABLE[0], |_, world: &World| {
            world.tasks.iter().all(|task| task.state == State::Succeeded)
        }),
        Property::sometimes(REACHABLE[1], |_, world: &World| {
            world.tasks.iter().any(|task| task.state == State::Failed)
        }),
        Property::sometimes(REACHABLE[2], |_, world: &World| {
            let nobody =
                |attempt| !world.processes.iter().any(|it| it.slots.iter().any(|s| s.attempt == attempt));
            world.calls.iter().any(|it| nobody(it.attempt))
        }),
        Property::sometimes(REACHABLE[3], |fleet: &Fleet, world: &World| {
            count(world.coolings.len()) == fleet.max && world.calls.len() == world.coolings.len()
        }),
        Property::sometimes(REACHABLE[4], |_, world: &World| {
            use crate::world::Ending::NotStarted;
            world.processes.iter().any(|it| it.slots.iter().any(|s| s.phase == Phase::Ended(NotStarted)))
        }),
        Property::sometimes(REACHABLE[5], |_, world: &World| {
            world.processes.iter().any(|it| it.slots.iter().any(|s| s.phase == Phase::Late))
        }),
    ]
}

fn overlaps(world: &World) -> bool {
    let running = |task| world.calls.iter().filter(|call| call.attempt.task == task).count();
    (0u8..).take(world.tasks.len()).any(|task| running(task) > 1)
}

/// Looks at one step, and keeps in `after` what it broke.
pub(crate) fn watch(fleet: &Fleet, before: &World, action: &Action, after: &mut World) {
    after.allowed = after.max.max(before.allowed.min(after.in_use));
    for (old, new) in before.tasks.iter().zip(&after.tasks) {
        let moved = if new.claim_no == old.claim_no {
            new.state == old.state || old.state.may_become(new.state)
        } else {
            // One exchange may end an attempt and claim the task anew.
            let anew = old.state == State::Pending || old.state.may_become(State::Pending);
            new.claim_no == old.claim_no + 1 && new.state == State::Running && anew
        };
        after.broken.table |= !moved;
    }
    let claimed = before.tasks.iter().zip(&after.tasks).filter(|(old, new)| old.claim_no != new.claim_no);
    let claimed = count(claimed.count());
    after.broken.lowered |= claimed > 0 && after.in_use > after.max;
    match action {
        Action::Exchange { process, id, want, .. } => {
            let exchange = exchange(&before.processes[*process], *id, *want);
            after.broken.owner |= !is_fenced(fleet, before, &exchange, after);
        }
        Action::CommitStray { stray, .. } => {
            after.broken.owner |= !is_fenced(fleet, before, &before.strays[*stray], after);
        }
        Action::Late { attempt, .. } => {
            let stays = |other: Attempt| after.coolings.iter().any(|it| it.attempt == other);
            let others = before.coolings.iter().map(|it| it.attempt).filter(|other| other != attempt);
            after.broken.owner |= before.tasks != after.tasks || !others.clone().all(stays);
        }
        Action::Fence { id } => {
            after.broken.lease |= fleet.lease.is_some()
                && matches!(before.leases[usize::from(*id)], Lease::Left(left) if left >= 0);
        }
        _ => {}
    }
}

/// Whether an exchange ended only attempts that it owned, and freed no more permits than those.
fn is_fenced(fleet: &Fleet, before: &World, exchange: &Exchange, after: &World) -> bool {
    let owned = |attempt: Attempt| {
        let task = &before.tasks[usize::from(attempt.task)];
        task.state == State::Running && task.owner == Some(exchange.id) && task.claim_no == attempt.claim_no
    };
    let mine: Vec<Attempt> = exchange.ended.iter().map(|it| it.0).filter(|attempt| owned(*attempt)).collect();
    let touched = (0u8..).zip(before.tasks.iter().zip(&after.tasks)).all(|(id, (old, new))| {
        old.state != State::Running
            || old == new
            || mine.contains(&Attempt { task: id, claim_no: old.claim_no })
    });
    let claimed = before.tasks.iter().zip(&after.tasks).filter(|(old, new)| old.claim_no != new.claim_no);
    // A split claim takes its permits before its tasks: that is another promise's matter.
    let freed = before.in_use + count(claimed.count()) - after.in_use;
    touched && (fleet.has(crate::Fault::PermitThenTask) || freed <= count(mine.len()))
}

impl Fleet {
    /// P5: everybody crashes now, transactions under way included; upkeep of a new process passes twice after the last
    /// lease, and once more when the last bound is over.
    fn recovers(&self, world: &World) -> bool {
        let mut world = crashed(world);
        self.fence_all(&mut world);
        let in_time = world.coolings.iter().all(|cooling| cooling.until > 0)
            && world.tasks.iter().all(|task| task.state != State::Running);
        while world.coolings.iter().any(|cooling| cooling.until > 0) {
            self.tick(&mut world);
        }
        self.pass(&mut world, true);
        in_time && world.in_use == 0 && world.coolings.is_empty()
    }

    /// P5, where hearts go on beating and nothing else does.
    fn lets_go(&self, world: &World) -> bool {
        let mut world = world.clone();
        world.upkeep = Upkeep::Idle;
        for _ in 0..=self.hold() + self.lease.unwrap_or(0) {
            self.tick(&mut world);
            for lease in world.leases.iter_mut().filter(|lease| **lease != Lease::Gone) {
                *lease = Lease::Left(self.lease.unwrap_or(0));
            }
        }
        self.pass(&mut world, false);
        world.in_use == count(world.coolings.len()) && world.coolings.iter().all(|it| it.until > 0)
    }

    /// The last lease runs out; the first pass reads that, the second acts on it.
    fn fence_all(&self, world: &mut World) {
        let holds = |lease: &Lease| self.lease.is_some() && matches!(lease, Lease::Left(left) if *left >= 0);
        while world.leases.iter().any(holds) {
            self.tick(world);
        }
        self.pass(world, false);
        self.pass(world, true);
    }

    /// One pass of upkeep.
    fn pass(&self, world: &mut World, read_before: bool) {
        for lease in &mut world.leases {
            if read_before && self.is_expired(*lease) {
                *lease = Lease::Gone;
            }
        }
        for task in (0u8..).take(world.tasks.len()) {
            if self.is_abandoned(world, task) {
                self.reclaim(world, task);
                if let Upkeep::Owes(cooling) = std::mem::replace(&mut world.upkeep, Upkeep::Idle) {
                    world.coolings.push(cooling);
                }
            }
        }
        let cooled = world.coolings.iter().filter(|it| self.has_cooled(**it)).map(|it| it.attempt);
        for attempt in cooled.collect::<Vec<_>>() {
            Self::end_cooling(world, attempt);
        }
        if self.audits() {
            self.repair(world);
        }
    }
}

/// Everybody is dead, upkeep between two statements included.
fn crashed(world: &World) -> World {
    let nobody = Process { id: None, slots: Vec::new(), job: Job::Idle };
    World {
        processes: vec![nobody; world.processes.len()],
        strays: Vec::new(),
        calls: Vec::new(),
        upkeep: Upkeep::Idle,
        ..world.clone()
    }
}
