//! What each action does.

use crate::fault::Fault;
use crate::fleet::Fleet;
use crate::store::{count, name};
use crate::world::{
    Answer, Attempt, Call, Ending, Exchange, Id, Job, Lease, Phase, Process, Slot, Upkeep, World,
};

/// One thing that happens. A pause is nothing of its own: a process that does not act while [`Action::Tick`] goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time passes, for the database and everybody else alike.
    Tick,
    /// A process's transaction is committed: all that has ended under this id, and so many claims.
    Exchange { process: usize, id: Id, want: i8, newest: bool },
    /// Where the claim is split, its second half.
    TakeTasks { process: usize },
    /// A process sends a transaction and hears nothing of it.
    Stray { process: usize, id: Id, want: i8 },
    /// It is committed, long after.
    CommitStray { stray: usize, newest: bool },
    /// Its answer arrives; a claim in it is started, or it is too late for that.
    Deliver { process: usize },
    /// A call ends for its process.
    End { process: usize, attempt: Attempt, ending: Ending },
    /// The heartbeat renews the lease, or learns that its consumer is gone.
    Beat { process: usize },
    /// What the database has and the process does not know is handed back.
    HandBack { process: usize },
    /// The late answer of a lost claim.
    Late { process: usize, attempt: Attempt },
    /// A process gets a new id.
    Register { process: usize },
    /// A process dies; its calls go on.
    Crash { process: usize },
    /// Upkeep declares a consumer gone.
    Fence { id: Id },
    /// Upkeep takes a task back.
    Reclaim { task: u8 },
    /// Upkeep frees a permit whose call must be over.
    EndCooling { attempt: Attempt },
    /// The first statement of an upkeep that is split.
    Select,
    /// Its second statement.
    UpkeepGoesOn,
    /// It dies between the two.
    UpkeepDies,
    /// A task is due.
    Promote { task: u8 },
    /// A person cancels a running task.
    Cancel { task: u8 },
    /// A person lowers the cap by one.
    Lower,
}

impl Fleet {
    pub(crate) fn step(&self, world: &mut World, action: &Action) {
        match action {
            Action::Tick => self.tick(world),
            Action::Exchange { process, id, want, newest } => {
                let exchange = exchange(&world.processes[*process], *id, *want);
                let answer = if self.has(Fault::PermitThenTask) && *want > 0 {
                    let (recorded, permits) = self.permits(world, &exchange);
                    world.processes[*process].job = Job::Halfway(*id, permits);
                    Answer { recorded, claims: Vec::new() }
                } else {
                    self.exchange(world, &exchange, *newest)
                };
                let it = &mut world.processes[*process];
                record(it, &answer.recorded);
                if !answer.claims.is_empty() {
                    it.job = Job::Claimed(*id, answer.claims, 0);
                }
            }
            Action::TakeTasks { process } => {
                if let Job::Halfway(id, permits) = world.processes[*process].job {
                    let claims = self.tasks(world, id, permits);
                    let none = claims.is_empty();
                    let job = if none { Job::Idle } else { Job::Claimed(id, claims, 0) };
                    world.processes[*process].job = job;
                }
            }
            Action::Stray { process, id, want } => {
                world.strays.push(exchange(&world.processes[*process], *id, *want));
            }
            Action::CommitStray { stray, newest } => {
                let exchange = world.strays.remove(*stray);
                self.exchange(world, &exchange, *newest);
            }
            Action::Deliver { process } => self.deliver(world, *process),
            Action::End { process, attempt, ending } => {
                if *ending != Ending::Broken {
                    world.calls.retain(|call| call.attempt != *attempt);
                }
                set_phase(&mut world.processes[*process], *attempt, Phase::Ended(*ending));
            }
            Action::Beat { process } => {
                if let Some(id) = world.processes[*process].id {
                    self.beat(world, id);
                    if !world.is_alive(id) {
                        world.processes[*process].id = None;
                    }
                }
            }
            Action::HandBack { process } => {
                if let Some(id) = world.processes[*process].id {
                    let orphans = Self::orphans(world, *process, id);
                    self.hand_back(world, &orphans);
                }
            }
            Action::Late { process, attempt } => {
                let slots = &mut world.processes[*process].slots;
                let Some(index) = slots.iter().position(|slot| slot.attempt == *attempt) else { return };
                if is_over(slots.remove(index).phase) {
                    self.late(world, *attempt);
                }
            }
            Action::Register { process } => {
                world.processes[*process].id = Some(name(world.leases.len()));
                world.leases.push(Lease::Left(self.lease.unwrap_or(0)));
            }
            Action::Crash { process } => {
                world.processes[*process] = Process { id: None, slots: Vec::new(), job: Job::Idle };
            }
            Action::Fence { id } => world.leases[usize::from(*id)] = Lease::Gone,
            Action::Reclaim { task } => self.reclaim(world, *task),
            Action::EndCooling { attempt } => Self::end_cooling(world, *attempt),
            Action::Select => self.select(world),
            Action::UpkeepGoesOn => self.upkeep_goes_on(world),
            Action::UpkeepDies => world.upkeep = Upkeep::Idle,
            Action::Promote { task } => {
                world.tasks[usize::from(*task)].state = permitq::model::State::Pending;
                world.tasks[usize::from(*task)].until = 0;
            }
            Action::Cancel { task } => self.cancel(world, *task),
            Action::Lower => world.max -= 1,
        }
    }

    /// A tick for everything that waits. Numbers that make no difference any more stay where they are.
    pub(crate) fn tick(&self, world: &mut World) {
        for lease in &mut world.leases {
            if let (Lease::Left(left), true) = (lease, self.lease.is_some()) {
                *left = (*left - 1).max(-1);
            }
        }
        for task in &mut world.tasks {
            let floor =
                if task.state == permitq::model::State::Running { -self.lease.unwrap_or(0) - 1 } else { 0 };
            task.until = (task.until - 1).max(floor);
        }
        for cooling in &mut world.coolings {
            cooling.until = (cooling.until - 1).max(0);
        }
        for process in &mut world.processes {
            if let Job::Claimed(_, _, age) = &mut process.job {
                *age = (*age + 1).min(self.start_window + 1);
            }
        }
        world.calls.retain_mut(|call| {
            call.left -= 1;
            call.left > 0
        });
    }

    /// Starts the claims, one at a time.
    fn deliver(&self, world: &mut World, process: usize) {
        let it = &mut world.processes[process];
        let Job::Claimed(id, mut claims, age) = std::mem::replace(&mut it.job, Job::Idle) else { return };
        // A claim under an earlier id is never started: it is the reclaimer's.
        if it.id != Some(id) {
            return;
        }
        let attempt = claims.remove(0);
        if !claims.is_empty() {
            it.job = Job::Claimed(id, claims, age);
        }
        let in_time = age <= self.start_window || self.has(Fault::NoStartWindow);
        let phase = if in_time { Phase::Calling } else { Phase::Ended(Ending::NotStarted) };
        it.slots.push(Slot { attempt, owner: id, phase });
        if in_time {
            world.calls.push(Call { attempt, left: self.way + self.call });
        }
    }

    fn select(&self, world: &mut World) {
        world.upkeep = if self.has(Fault::CountedElsewhere) {
            let due = world.coolings.iter().filter(|cooling| self.has_cooled(**cooling)).count();
            Upkeep::Counted(count(due))
        } else {
            let tasks = (0u8..).take(world.tasks.len());
            Upkeep::Selected(tasks.filter(|task| self.is_abandoned(world, *task)).collect())
        };
    }

    fn upkeep_goes_on(&self, world: &mut World) {
        match std::mem::replace(&mut world.upkeep, Upkeep::Idle) {
            Upkeep::Idle => {}
            Upkeep::Selected(tasks) => tasks.into_iter().for_each(|task| self.reclaim(world, task)),
            Upkeep::Owes(cooling) => world.coolings.push(cooling),
            Upkeep::Counted(permits) => {
                world.coolings.retain(|cooling| !self.has_cooled(*cooling));
                world.in_use -= permits;
            }
        }
    }
}

fn ended(slot: Slot) -> Option<(Attempt, Ending)> {
    match slot.phase {
        Phase::Ended(ending) => Some((slot.attempt, ending)),
        Phase::Calling | Phase::Late => None,
    }
}

fn set_phase(process: &mut Process, attempt: Attempt, phase: Phase) {
    for slot in process.slots.iter_mut().filter(|slot| slot.attempt == attempt) {
        slot.phase = phase;
    }
}

/// Whether the process knows that the call is over.
fn is_over(phase: Phase) -> bool {
    match phase {
        Phase::Late => true,
        Phase::Ended(ending) => ending.is_clear(),
        Phase::Calling => false,
    }
}

/// Recorded ends are forgotten; what was not ours any more becomes a late answer.
fn record(process: &mut Process, recorded: &[(Attempt, bool)]) {
    for (attempt, ours) in recorded {
        process.slots.retain_mut(|slot| {
            if slot.attempt != *attempt {
                return true;
            }
            let late = !ours && is_over(slot.phase);
            slot.phase = Phase::Late;
            late
        });
    }
}

/// All that has ended under this id, and so many claims.
pub(crate) fn exchange(process: &Process, id: Id, want: i8) -> Exchange {
    let ended = process.slots.iter().filter(|slot| slot.owner == id).copied().filter_map(ended).collect();
    Exchange { id, ended, want }
}
