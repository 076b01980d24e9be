//! The model: a small fleet with its bounds, and what can happen to it.

use permitq::model::{OnAbandon, State};
use stateright::{Model, Property};

use crate::fault::Fault;
use crate::promise;
use crate::step::Action;
use crate::symmetry;
use crate::world::{Broken, Ending, Id, Job, Lease, Phase, Process, Task, Ticks, Upkeep, World};

/// How large the world is, how long things take, and what is done wrong.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Consumer processes.
    pub processes: usize,
    /// Calls at once in each.
    pub slots: usize,
    /// Tasks, all due at the start.
    pub tasks: usize,
    /// The cap.
    pub max: i8,
    /// Attempts in all.
    pub max_attempts: u32,
    /// No task is claimed more often, hand-backs included: they cost no attempt.
    pub claims: u8,
    /// Ids that may be registered in all, the first ones included.
    pub ids: usize,
    /// What an unclear end does.
    pub on_abandon: OnAbandon,
    /// How long claims hold without a beat. `None`: a lease may run out at any moment, whatever the beats. That is more
    /// than can happen, and far fewer states.
    pub lease: Option<Ticks>,
    /// A claim that has not started by then is given back.
    pub start_window: Ticks,
    /// From a call's send to its arrival, at most: `connect_timeout + tcp_user_timeout`. Taken as in flight already.
    pub way: Ticks,
    /// From a call's arrival to its end, at most.
    pub call: Ticks,
    /// So many transactions at once may outlive the client that gave them up.
    pub strays: usize,
    /// Whether people cancel running tasks.
    pub cancels: bool,
    /// People lower the cap down to this.
    pub lowest: i8,
    /// Worlds that differ in names only are one state.
    pub symmetric: bool,
    /// What is done wrong on purpose.
    pub faults: Vec<Fault>,
}

impl Fleet {
    /// Two processes of one slot, one task of two attempts.
    pub fn small(max: i8) -> Self {
        Self {
            processes: 2,
            slots: 1,
            tasks: 1,
            max,
            max_attempts: 2,
            claims: 2,
            ids: 2,
            on_abandon: OnAbandon::Retry,
            lease: None,
            start_window: 1,
            way: 1,
            call: 1,
            strays: 0,
            cancels: false,
            lowest: max,
            symmetric: true,
            faults: Vec::new(),
        }
    }

    /// The same with this done wrong, and names that stay.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.symmetric = false;
        self.faults.push(fault);
        self
    }

    /// Whether this is done wrong.
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// How long a permit is held at most, from its claim on.
    pub fn hold(&self) -> Ticks {
        let part = |span, forgotten| if self.has(forgotten) { 0 } else { span };
        part(self.start_window, Fault::HoldWithoutStartWindow)
            + part(self.way, Fault::HoldWithoutTheWay)
            + part(self.call, Fault::HoldWithoutTheCall)
    }

    /// Whether upkeep audits. The recipe that splits its transactions has nothing like it.
    pub fn audits(&self) -> bool {
        !self.has(Fault::PermitThenTask) && !self.has(Fault::ResetThenPermits)
    }
}

impl Model for Fleet {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let task = Task { state: State::Pending, claim_no: 0, attempts: 0, owner: None, until: 0 };
        let process = |id| Process { id: Some(id), slots: Vec::new(), job: Job::Idle };
        vec![World {
            max: self.max,
            in_use: 0,
            tasks: vec![task; self.tasks],
            coolings: Vec::new(),
            leases: vec![Lease::Left(self.lease.unwrap_or(0)); self.processes],
            processes: (0..).take(self.processes).map(process).collect(),
            strays: Vec::new(),
            calls: Vec::new(),
            upkeep: Upkeep::Idle,
            allowed: self.max,
            broken: Broken::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for process in 0..world.processes.len() {
            self.process_actions(world, process, actions);
        }
        for stray in 0..world.strays.len() {
            actions.extend([false, true].map(|newest| Action::CommitStray { stray, newest }));
        }
        self.upkeep_actions(world, actions);
        for (task, id) in world.tasks.iter().zip(0u8..) {
            if task.state == State::Scheduled && task.until <= 0 {
                actions.push(Action::Promote { task: id });
            }
            if task.state == State::Running && self.cancels {
                actions.push(Action::Cancel { task: id });
            }
        }
        if world.max > self.lowest {
            actions.push(Action::Lower);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut after = before.clone();
        self.step(&mut after, &action);
        after.tidy();
        promise::watch(self, before, &action, &mut after);
        Some(if self.symmetric { symmetry::representative(&after) } else { after })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promise::all()
    }
}

impl Fleet {
    fn process_actions(&self, world: &World, process: usize, actions: &mut Vec<Action>) {
        let it = &world.processes[process];
        match &it.job {
            Job::Idle => self.idle_actions(world, process, actions),
            Job::Halfway(..) => actions.push(Action::TakeTasks { process }),
            Job::Claimed(..) => actions.push(Action::Deliver { process }),
        }
        if let Some(id) = it.id
            && (it.job == Job::Idle || self.has(Fault::HandBackInFlight))
            && !Self::orphans(world, process, id).is_empty()
        {
            actions.push(Action::HandBack { process });
        }
        for slot in it.slots.iter().filter(|slot| slot.phase == Phase::Calling) {
            let attempt = slot.attempt;
            actions.push(Action::End { process, attempt, ending: Ending::Succeeded });
            actions.push(Action::End { process, attempt, ending: Ending::Failed });
            actions.push(Action::End { process, attempt, ending: Ending::Broken });
        }
        if let Some(id) = it.id {
            // A beat that changes nothing is none.
            if world.leases[usize::from(id)] != Lease::Left(self.lease.unwrap_or(0)) {
                actions.push(Action::Beat { process });
            }
        }
        if it.id.is_some() || !it.slots.is_empty() || it.job != Job::Idle {
            actions.push(Action::Crash { process });
        }
    }

    /// What a process may do while it waits for no transaction.
    fn idle_actions(&self, world: &World, process: usize, actions: &mut Vec<Action>) {
        let it = &world.processes[process];
        if it.id.is_none() && world.leases.len() < self.ids {
            actions.push(Action::Register { process });
        }
        let calling = it.slots.iter().filter(|slot| slot.phase == Phase::Calling).count();
        let room = i8::try_from(self.slots.saturating_sub(calling)).unwrap_or(i8::MAX);
        let mut ids: Vec<_> = it
            .slots
            .iter()
            .filter(|slot| matches!(slot.phase, Phase::Ended(_)))
            .map(|slot| slot.owner)
            .collect();
        ids.dedup();
        for id in ids {
            self.exchange_actions(world, process, id, 0, actions);
            if it.id == Some(id) && room > 0 {
                self.exchange_actions(world, process, id, room, actions);
            }
        }
        // Without ends to record, only what an unlocked look shows as possible.
        let due = world.tasks.iter().any(|task| task.state == State::Pending && task.claim_no < self.claims);
        if let Some(id) = it.id
            && !it.slots.iter().any(|slot| slot.owner == id && matches!(slot.phase, Phase::Ended(_)))
            && room > 0
            && due
            && world.in_use < world.max
        {
            self.exchange_actions(world, process, id, room, actions);
        }
        for slot in &it.slots {
            let late = match slot.phase {
                Phase::Late => true,
                Phase::Ended(_) => it.id != Some(slot.owner),
                Phase::Calling => false,
            };
            if late {
                actions.push(Action::Late { process, attempt: slot.attempt });
            }
        }
    }

    /// An exchange is sent and committed at once, or later, when its client waits no more.
    fn exchange_actions(&self, world: &World, process: usize, id: Id, want: i8, actions: &mut Vec<Action>) {
        actions.push(Action::Exchange { process, id, want, newest: false });
        if want > 0 && world.tasks.len() > 1 {
            actions.push(Action::Exchange { process, id, want, newest: true });
        }
        if world.strays.len() < self.strays {
            actions.push(Action::Stray { process, id, want });
        }
    }

    fn upkeep_actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (lease, id) in world.leases.iter().zip(0u8..) {
            if self.is_expired(*lease) {
                actions.push(Action::Fence { id });
            }
        }
        if world.upkeep != Upkeep::Idle {
            actions.extend([Action::UpkeepGoesOn, Action::UpkeepDies]);
            return;
        }
        let abandoned = (0u8..).take(world.tasks.len()).filter(|task| self.is_abandoned(world, *task));
        if self.has(Fault::SelectThenUpdate) {
            if abandoned.clone().next().is_some() {
                actions.push(Action::Select);
            }
        } else {
            actions.extend(abandoned.map(|task| Action::Reclaim { task }));
        }
        let mut cooled = world.coolings.iter().filter(|cooling| self.has_cooled(**cooling));
        if self.has(Fault::CountedElsewhere) {
            if cooled.next().is_some() {
                actions.push(Action::Select);
            }
        } else {
            actions.extend(cooled.map(|cooling| Action::EndCooling { attempt: cooling.attempt }));
        }
    }
}
