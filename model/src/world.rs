//! One state of the world: the tables, the processes and what each of them knows, the downstream.
//!
//! ```text
//!  processes                         database                          downstream
//!  ┌──────────────────┐  exchange  ┌───────────────────────────┐     ┌──────────────────┐
//!  │ id, slots, job   │ ─────────► │ max, in_use, tasks,       │     │ calls: on their  │
//!  │ (sent, answered) │ ◄───────── │ coolings, leases          │     │ way, or running  │
//!  └────────┬─────────┘            └───────────────────────────┘     └────────▲─────────┘
//!           └─────────────────────── a call, at once ─────────────────────────┘
//! ```
//!
//! There is no clock in a state, only the time left until something: every instant is relative to now. So a world that
//! waits looks the same tomorrow, and the state space is finite without a horizon.

use permitq::model::{End, Outcome, State, Verdict, Why};

/// Time left, in ticks; negative where it has passed.
pub type Ticks = i8;

/// A consumer's id: one per start of a process, never used again.
pub type Id = u8;

/// One attempt of one task, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    /// Which task.
    pub task: u8,
    /// The fencing token.
    pub claim_no: u8,
}

/// A row of `permitq_task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Where it stands.
    pub state: State,
    /// Grows with every claim.
    pub claim_no: u8,
    /// Attempts used.
    pub attempts: u8,
    /// Who runs it.
    pub owner: Option<Id>,
    /// While it runs: until its call must be over. While it is scheduled: until it is due.
    pub until: Ticks,
}

/// A row of `permitq_cooling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cooling {
    /// Whose call may still run.
    pub attempt: Attempt,
    /// Until it must be over.
    pub until: Ticks,
}

/// A row of `permitq_consumer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    /// Not gone; its claims hold so long without another beat. Always 0 where leases are not timed.
    Left(Ticks),
    /// For ever.
    Gone,
}

/// How a process's attempt ended, as far as the process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ending {
    /// The answer was read to its end: done.
    Succeeded,
    /// The answer was read to its end: try again.
    Failed,
    /// The call was given up, or its connection broke: it may still run.
    Broken,
    /// No request was sent.
    NotStarted,
}

impl Ending {
    /// What permitq's own model makes of it.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Succeeded => Outcome::succeeded(None),
            Self::Failed => Outcome::retry("", None),
            Self::Broken => Outcome::unclear(Why::Connection, ""),
            Self::NotStarted => Outcome::not_started(""),
        }
    }

    /// Whether the downstream is known to be done with the call.
    pub fn is_clear(self) -> bool {
        self != Self::Broken
    }
}

/// What the reclaimer says of an attempt whose owner is gone.
pub(crate) fn abandoned() -> Outcome {
    Outcome {
        verdict: Verdict::Abandoned { error: String::new() },
        end: End::Unclear(Why::Abandoned),
        status: None,
    }
}

/// What a person's cancel says of a running attempt.
pub(crate) fn cancelled() -> Outcome {
    Outcome {
        verdict: Verdict::Cancelled { error: String::new() },
        end: End::Unclear(Why::Cancelled),
        status: None,
    }
}

/// Where a claim of a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Its call was sent and has not ended for us.
    Calling,
    /// To be recorded.
    Ended(Ending),
    /// It was not ours any more, but the call is known to be over: a late answer. Others leave nothing to say.
    Late,
}

/// A claim that a process knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Which attempt.
    pub attempt: Attempt,
    /// The id it was claimed under.
    pub owner: Id,
    /// How far it is.
    pub phase: Phase,
}

/// A transaction: end these, claim so many.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Exchange {
    /// Under which id.
    pub id: Id,
    /// What ended, and how.
    pub ended: Vec<(Attempt, Ending)>,
    /// Tasks wanted.
    pub want: i8,
}

/// What an [`Exchange`] answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    /// Which ends were still ours to record.
    pub(crate) recorded: Vec<(Attempt, bool)>,
    /// What was claimed.
    pub(crate) claims: Vec<Attempt>,
}

/// What a process waits for: one transaction at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Nothing.
    Idle,
    /// Only where the claim is split: under this id so many permits are taken, and no tasks yet.
    Halfway(Id, i8),
    /// Under this id these were claimed so many ticks ago, and the answer is on its way. What else an answer may say
    /// only the process itself could see, so that it might as well have seen it at once.
    Claimed(Id, Vec<Attempt>, Ticks),
}

/// A process and what it knows. One that crashed knows nothing until it registers again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// What it is registered as; `None` after a crash, or after learning that it is gone.
    pub id: Option<Id>,
    /// Its claims.
    pub slots: Vec<Slot>,
    /// Its transaction under way.
    pub job: Job,
}

impl Process {
    /// Every attempt of this id that it calls or has not recorded yet.
    pub fn knows(&self, id: Id, attempt: Attempt) -> bool {
        self.slots.iter().any(|slot| slot.owner == id && slot.attempt == attempt)
    }
}

/// A call, whoever still waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// Whose.
    pub attempt: Attempt,
    /// From now on it is over after so many ticks at most: on its way, or at the downstream.
    pub left: Ticks,
}

/// What an upkeep that is split into statements carries from one to the next; always [`Upkeep::Idle`] otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Upkeep {
    /// Nothing.
    Idle,
    /// It has selected these tasks as stale.
    Selected(Vec<u8>),
    /// It has reset a task whose permit is to cool.
    Owes(Cooling),
    /// It has counted so many permits to free.
    Counted(i8),
}

/// A promise broken by a step, not by a state. Once set, it stays.
#[expect(clippy::struct_excessive_bools, reason = "one note a promise")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken {
    /// A write by somebody else than the attempt's owner took effect.
    pub owner: bool,
    /// A task moved outside the transition table, out of a final state above all.
    pub table: bool,
    /// Somebody was declared gone within its lease.
    pub lease: bool,
    /// Something was claimed while more permits were in use than the cap allows.
    pub lowered: bool,
}

/// One state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The cap.
    pub max: i8,
    /// Permits taken, as the counter says.
    pub in_use: i8,
    /// `permitq_task`.
    pub tasks: Vec<Task>,
    /// `permitq_cooling`.
    pub coolings: Vec<Cooling>,
    /// `permitq_consumer`, by id.
    pub leases: Vec<Lease>,
    /// The fleet.
    pub processes: Vec<Process>,
    /// Transactions whose client has given up: they may be committed any time, or never.
    pub strays: Vec<Exchange>,
    /// The downstream.
    pub calls: Vec<Call>,
    /// See there.
    pub upkeep: Upkeep,
    /// How many calls may be in flight: the cap, or after lowering it the permits that were in use already.
    pub allowed: i8,
    /// What went wrong.
    pub broken: Broken,
}

impl World {
    /// What `in_use` should be.
    pub fn counted(&self) -> usize {
        self.tasks.iter().filter(|task| task.state == State::Running).count() + self.coolings.len()
    }

    /// Whether the database knows this consumer and has not declared it gone.
    pub fn is_alive(&self, id: Id) -> bool {
        self.leases.get(usize::from(id)).is_some_and(|lease| *lease != Lease::Gone)
    }

    /// The same thing in the same order, and no difference that makes none: equal worlds are equal states.
    pub(crate) fn tidy(&mut self) {
        self.coolings.sort_unstable();
        self.calls.sort_unstable();
        self.strays.sort_unstable();
    }
}
