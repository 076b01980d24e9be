//! The transactions, each one atomic step, after `src/store/{exchange,record,upkeep,beat}.rs`.
//!
//! What an end means for task and permit is not modelled but asked: [`permitq::model::settle`].

use std::time::Duration;

use permitq::model::{Outcome, Retry, RunAt, Standing, State, settle};

use crate::fault::Fault;
use crate::fleet::Fleet;
use crate::world::{
    Answer, Attempt, Cooling, Ending, Exchange, Id, Lease, Ticks, Upkeep, World, abandoned, cancelled,
};

/// A failed task runs again at once: whoever waits longer than that is one who claims later.
const AT_ONCE: Retry = Retry { max_attempts: 0, backoff: Duration::ZERO, backoff_cap: Duration::ZERO };

impl Fleet {
    /// Ends some claims, takes others. `newest`: which of the due tasks come first.
    pub(crate) fn exchange(&self, world: &mut World, exchange: &Exchange, newest: bool) -> Answer {
        let (recorded, freed) = self.record(world, exchange);
        let room = self.room(world, exchange.want, freed);
        let claims = self.take(world, exchange.id, room, newest);
        world.in_use += count(claims.len()) - freed;
        Answer { recorded, claims }
    }

    /// The first transaction of a split claim: ends, and permits without tasks. Answers the permits.
    pub(crate) fn permits(&self, world: &mut World, exchange: &Exchange) -> (Vec<(Attempt, bool)>, i8) {
        let (recorded, freed) = self.record(world, exchange);
        let room = self.room(world, exchange.want, freed);
        world.in_use += room - freed;
        (recorded, room)
    }

    /// The second: tasks for these permits. What is left over is given back.
    pub(crate) fn tasks(&self, world: &mut World, id: Id, permits: i8) -> Vec<Attempt> {
        let claims = self.take(world, id, permits, false);
        world.in_use -= permits - count(claims.len());
        claims
    }

    /// Records what is still ours and answers how many permits that frees.
    fn record(&self, world: &mut World, exchange: &Exchange) -> (Vec<(Attempt, bool)>, i8) {
        let mut recorded = Vec::with_capacity(exchange.ended.len());
        let mut freed = 0;
        for (attempt, ending) in &exchange.ended {
            let task = &world.tasks[usize::from(attempt.task)];
            let ours = task.state == State::Running
                && task.owner == Some(exchange.id)
                && (task.claim_no == attempt.claim_no || self.has(Fault::ConsumerIsTheFence));
            if ours {
                freed += i8::from(!self.end(world, attempt.task, &self.outcome(*ending)));
            } else if self.has(Fault::ReleaseInFinally) && world.in_use > 0 {
                freed += 1;
            }
            recorded.push((*attempt, ours));
        }
        (recorded, freed)
    }

    fn outcome(&self, ending: Ending) -> Outcome {
        let mut outcome = ending.outcome();
        if self.has(Fault::BrokenIsClear) {
            outcome.end = permitq::model::End::Clear;
        }
        outcome
    }

    /// Ends a running attempt and answers whether its permit cools.
    fn end(&self, world: &mut World, id: u8, outcome: &Outcome) -> bool {
        let task = &mut world.tasks[usize::from(id)];
        let standing = Standing {
            attempts: u32::from(task.attempts),
            max_attempts: self.max_attempts,
            on_abandon: self.on_abandon,
        };
        let settlement = settle(standing, outcome, &AT_ONCE, 0.0);
        let attempt = Attempt { task: id, claim_no: task.claim_no };
        let until = task.until;
        task.state = settlement.state;
        task.attempts = u8::try_from(settlement.attempts).unwrap_or(u8::MAX);
        task.owner = None;
        if task.state.is_final() {
            // It tells nothing any more: what is final is never claimed.
            task.attempts = 0;
        }
        task.until = match settlement.run_at {
            Some(RunAt::AfterCooling(_)) => until.max(0),
            _ => 0,
        };
        if settlement.cooling.is_some() {
            world.coolings.push(Cooling { attempt, until: until.max(0) });
        }
        settlement.cooling.is_some()
    }

    fn room(&self, world: &World, want: i8, freed: i8) -> i8 {
        let free = world.max - world.in_use;
        if want > freed {
            (free + freed).clamp(0, want)
        } else if self.has(Fault::HandOverBypassesMax) {
            freed.clamp(0, want)
        } else {
            (free.min(0) + freed).clamp(0, want)
        }
    }

    fn take(&self, world: &mut World, id: Id, room: i8, newest: bool) -> Vec<Attempt> {
        let mut claims = Vec::new();
        if !world.is_alive(id) {
            return claims;
        }
        let hold = self.hold();
        let mut order: Vec<usize> = (0..world.tasks.len()).collect();
        if newest {
            order.reverse();
        }
        for index in order {
            let task = &mut world.tasks[index];
            if count(claims.len()) < room && task.state == State::Pending && task.claim_no < self.claims {
                task.state = State::Running;
                task.claim_no += 1;
                task.attempts += 1;
                task.owner = Some(id);
                task.until = hold;
                claims.push(Attempt { task: name(index), claim_no: task.claim_no });
            }
        }
        claims
    }

    /// Renews a lease, unless its consumer is gone.
    pub(crate) fn beat(&self, world: &mut World, id: Id) {
        if world.is_alive(id) {
            world.leases[usize::from(id)] = Lease::Left(self.lease.unwrap_or(0));
        }
    }

    /// Running tasks of this id that its process does not know.
    pub(crate) fn orphans(world: &World, process: usize, id: Id) -> Vec<u8> {
        let knows = |attempt| world.processes[process].knows(id, attempt);
        let tasks = world.tasks.iter().zip(0u8..);
        tasks
            .filter(|(task, _)| task.state == State::Running && task.owner == Some(id))
            .filter(|(task, id)| !knows(Attempt { task: *id, claim_no: task.claim_no }))
            .map(|(_, id)| id)
            .collect()
    }

    /// Hands back what a process never heard of.
    pub(crate) fn hand_back(&self, world: &mut World, orphans: &[u8]) {
        for task in orphans {
            self.end(world, *task, &Ending::NotStarted.outcome());
            world.in_use -= 1;
        }
    }

    /// A late answer: the call is known to be over, so its own cooling ends.
    pub(crate) fn late(&self, world: &mut World, attempt: Attempt) {
        let own = |cooling: &Cooling| {
            cooling.attempt == attempt
                || (self.has(Fault::LateByTask) && cooling.attempt.task == attempt.task)
        };
        if let Some(index) = world.coolings.iter().position(own) {
            world.coolings.remove(index);
            world.in_use -= 1;
        }
    }

    /// What upkeep adds to the database's clock: nothing, where it asks the database.
    fn ahead(&self) -> Ticks {
        if self.has(Fault::LocalClock) { Fault::AHEAD } else { 0 }
    }

    /// Whether upkeep takes this lease for over.
    pub(crate) fn is_expired(&self, lease: Lease) -> bool {
        matches!(lease, Lease::Left(left) if self.lease.is_none() || left < self.ahead())
    }

    /// Whether upkeep takes this task for one that nobody will finish.
    pub(crate) fn is_abandoned(&self, world: &World, task: u8) -> bool {
        let task = &world.tasks[usize::from(task)];
        task.state == State::Running
            && (!task.owner.is_some_and(|owner| world.is_alive(owner))
                || task.until < -self.lease.unwrap_or(0))
    }

    /// Takes one task back; its permit cools.
    pub(crate) fn reclaim(&self, world: &mut World, id: u8) {
        if self.has(Fault::EndlessAttempts) {
            // As if it were never the last one: the settlement of a first attempt.
            let attempts = std::mem::replace(&mut world.tasks[usize::from(id)].attempts, 1);
            self.end(world, id, &abandoned());
            world.tasks[usize::from(id)].attempts = attempts;
            return;
        }
        self.end(world, id, &abandoned());
        if self.has(Fault::FreedAtReclaim) {
            world.coolings.pop();
            world.in_use -= 1;
        } else if self.has(Fault::ResetThenPermits)
            && let Some(cooling) = world.coolings.pop()
        {
            world.upkeep = Upkeep::Owes(cooling);
        }
    }

    /// Whether upkeep takes the call of this cooling for over.
    pub(crate) fn has_cooled(&self, cooling: Cooling) -> bool {
        cooling.until <= self.ahead()
    }

    /// Frees one permit whose call must be over.
    pub(crate) fn end_cooling(world: &mut World, attempt: Attempt) {
        let before = world.coolings.len();
        world.coolings.retain(|cooling| cooling.attempt != attempt);
        world.in_use -= count(before - world.coolings.len());
    }

    /// A person cancels a running task.
    pub(crate) fn cancel(&self, world: &mut World, task: u8) {
        self.end(world, task, &cancelled());
    }

    /// Lock, then count: a deficit is raised at once, a surplus cools for the longest bound.
    pub(crate) fn repair(&self, world: &mut World) {
        let counted = count(world.counted());
        for _ in counted..world.in_use {
            let attempt = Attempt { task: u8::MAX, claim_no: 0 };
            world.coolings.push(Cooling { attempt, until: self.hold() });
        }
        world.in_use = world.in_use.max(counted);
    }
}

/// A small number.
pub(crate) fn count(n: usize) -> i8 {
    i8::try_from(n).unwrap_or(i8::MAX)
}

/// A name by number.
pub(crate) fn name(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}
