//! What goes wrong when: computed from the seed alone, before anything starts.
//!
//! Each fault comes with its end (kill and start, freeze and thaw, bad line and good line), so that carrying a plan out
//! is reading it line by line. A consumer suffers one fault at a time, of each side of its lines too, so that no fault
//! hides another.

use std::fmt;

use fastrand::Rng;
use serde::Serialize;

use super::scale::{CAP, CAP_MOST, HOLD, LEASE, MEMBERS};

/// A kind of fault. `--only` takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// kill -9 of a consumer, and its restart
    Kill,
    /// SIGSTOP of a consumer, shorter or longer than its lease
    Freeze,
    /// SIGTERM of a consumer, and its restart
    Terminate,
    /// A consumer's line to the database: cut, slow, silent, refused, forgotten; on SQLite the write lock is held
    Cut,
    /// A consumer's line to the downstream: the same
    Downstream,
    /// The database server: restarted, or killed (-9) and started
    Restart,
    /// `max_permits` changed, also to 0 and back
    Retune,
    /// The counter edited by hand, in both directions
    Edit,
    /// The database's clock stepped, forward and back
    Clock,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Kill,
        Self::Freeze,
        Self::Terminate,
        Self::Cut,
        Self::Downstream,
        Self::Restart,
        Self::Retune,
        Self::Edit,
        Self::Clock,
    ];

    /// Its name, as `--only` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Terminate => "terminate",
            Self::Cut => "cut",
            Self::Downstream => "downstream",
            Self::Restart => "restart",
            Self::Retune => "retune",
            Self::Edit => "edit",
            Self::Clock => "clock",
        }
    }

    /// How often it happens to some consumer, of 100 such faults; `None` where it happens to all of them at once.
    fn weight(self) -> Option<u32> {
        match self {
            Self::Kill => Some(40),
            Self::Freeze => Some(18),
            Self::Terminate => Some(13),
            Self::Cut => Some(15),
            Self::Downstream => Some(14),
            Self::Restart | Self::Retune | Self::Edit | Self::Clock => None,
        }
    }

    /// Milliseconds from one to the next among all others, of what happens to all.
    fn rate(self) -> u64 {
        match self {
            Self::Retune => 9_000,
            Self::Edit => 12_000,
            Self::Cut => 15_000,
            Self::Restart => 20_000,
            _ => 24_000,
        }
    }

    /// Milliseconds from one to the next where it happens alone.
    fn pace(self) -> u64 {
        match self {
            Self::Kill | Self::Terminate => 700,
            Self::Freeze | Self::Cut | Self::Downstream => 900,
            Self::Retune => 2_500,
            Self::Edit => 4_000,
            Self::Restart => 6_000,
            Self::Clock => 9_000,
        }
    }
}

/// What the database can suffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An `SQLite` file: no line, no server.
    File,
    /// A private server.
    Server,
    /// Somebody's database: not restarted, and its clock is left alone.
    Url,
}

impl Place {
    fn suffers(self, fault: Fault) -> bool {
        match self {
            Self::Server => true,
            Self::File => fault != Fault::Restart,
            Self::Url => !matches!(fault, Fault::Restart | Fault::Clock),
        }
    }
}

/// Which of a consumer's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Database,
    Downstream,
}

/// What a line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Every open connection is reset once.
    Cut,
    /// Each request comes so many milliseconds later.
    Slow(u64),
    /// Nothing gets through, and nobody is told.
    Silent,
    /// New connections are refused, open ones are reset.
    Refused,
    /// Open connections are swallowed for ever, new ones pass.
    Forgotten,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Kill(usize),
    Freeze(usize, u64),
    Thaw(usize),
    Terminate(usize),
    /// Ends [`Act::Kill`] and [`Act::Terminate`].
    Start(usize),
    Line(usize, Side, Line, u64),
    /// Ends [`Act::Line`].
    Mend(usize, Side),
    /// Somebody else writes to the `SQLite` file for so long.
    Lock(u64),
    /// In order, or at once.
    Restart {
        kill: bool,
    },
    Retune(i64),
    Edit(i64),
    /// The clock is so many milliseconds ahead (+) or behind (-) from now on.
    Clock(i64),
    /// A person cancels a task that runs, or one that waits.
    Cancel {
        running: bool,
    },
    /// A person retries a failed or cancelled task.
    Retry,
    /// So many tasks, whose calls are drawn from this seed.
    Enqueue(u32, u64),
}

/// One line of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Milliseconds after the start.
    pub(super) at: u64,
    pub(super) act: Act,
}

/// What happens when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(super) steps: Vec<Step>,
    /// When the last fault has ended.
    pub(super) end: u64,
}

/// Milliseconds between two batches of new tasks.
const FEED: u64 = 500;
/// Milliseconds between two faults, on average.
const GAP: u64 = 550;

struct Planner {
    rng: Rng,
    steps: Vec<Step>,
    /// Until when each consumer suffers something.
    busy: [u64; MEMBERS],
    /// Until when the database as a whole does.
    all_busy: u64,
    retune_at: u64,
    edit_at: u64,
    clock_at: u64,
    cap: i64,
    /// What the clock shows.
    ahead: i64,
}

impl Plan {
    /// The plan of this seed. What the database cannot suffer is left out.
    pub fn new(seed: u64, ms: u64, only: Option<Fault>, place: Place) -> Self {
        let mut planner = Planner {
            rng: Rng::with_seed(seed),
            steps: Vec::new(),
            busy: [0; MEMBERS],
            all_busy: 0,
            retune_at: 0,
            edit_at: 0,
            clock_at: 0,
            cap: CAP,
            ahead: 0,
        };
        planner.feed(ms);
        match only {
            Some(fault) => planner.stream(ms, place, fault.pace(), |_| fault),
            None => planner.all(ms, place),
        }
        let mut end = planner.steps.iter().map(|step| step.at).max().unwrap_or_default().max(ms);
        if planner.cap != CAP {
            planner.add(end, Act::Retune(CAP));
        }
        if planner.ahead != 0 {
            planner.add(end, Act::Clock(0));
        }
        end += 1;
        let mut steps = planner.steps;
        steps.sort_by_key(|step| step.at);
        Self { steps, end }
    }

    pub(super) fn has(&self, wanted: impl Fn(&Act) -> bool) -> bool {
        self.steps.iter().any(|step| wanted(&step.act))
    }
}

impl Planner {
    fn add(&mut self, at: u64, act: Act) {
        self.steps.push(Step { at, act });
    }

    fn feed(&mut self, ms: u64) {
        for at in (0..ms).step_by(usize::try_from(FEED).unwrap_or(1)) {
            let (n, seed) = (self.rng.u32(1..=6), self.rng.u64(..));
            self.add(at, Act::Enqueue(n, seed));
        }
    }

    /// Faults from time to time, once everybody is up and at work.
    fn stream(&mut self, ms: u64, place: Place, every: u64, fault: impl Fn(&mut Self) -> Fault) {
        let mut at = 2_000.min(ms / 4);
        // Not all kinds begin at once.
        if every > GAP * 2 {
            at += self.rng.u64(0..every / 2);
        }
        while at < ms {
            let fault = fault(self);
            if place.suffers(fault) {
                self.plan(at, fault, place);
            }
            at += self.rng.u64(every / 2..=every * 3 / 2);
        }
    }

    fn all(&mut self, ms: u64, place: Place) {
        let of_one =
            |fault: &Fault| fault.weight().is_some() && !(place == Place::File && *fault == Fault::Cut);
        let (some, all): (Vec<_>, Vec<_>) = Fault::ALL.into_iter().partition(of_one);
        self.stream(ms, place, GAP, |planner| planner.draw(&some));
        for fault in all {
            self.stream(ms, place, fault.rate(), |_| fault);
        }
        let mut at = 1_000;
        while at < ms {
            let act = match self.rng.u32(0..4) {
                0 => Act::Retry,
                luck => Act::Cancel { running: luck > 1 },
            };
            self.add(at, act);
            at += self.rng.u64(2_000..6_000);
        }
    }

    fn draw(&mut self, faults: &[Fault]) -> Fault {
        let weight = |fault: &Fault| fault.weight().unwrap_or_default();
        let mut luck = self.rng.u32(0..faults.iter().map(weight).sum());
        for fault in faults {
            if luck < weight(fault) {
                return *fault;
            }
            luck -= weight(fault);
        }
        Fault::Kill
    }

    /// A consumer that suffers nothing, and will not for so long.
    fn member(&mut self, at: u64, length: u64) -> Option<usize> {
        let idle: Vec<_> = (0..MEMBERS).filter(|member| self.busy[*member] <= at).collect();
        let member = self.rng.choice(idle)?;
        // A little peace, so that it works before the next one.
        self.busy[member] = at + length + 300;
        Some(member)
    }

    /// Shorter than the lease, or longer.
    fn spell(&mut self) -> u64 {
        if self.rng.bool() { self.rng.u64(200..LEASE / 2) } else { self.rng.u64(LEASE + 700..LEASE + 2_200) }
    }

    fn plan(&mut self, at: u64, fault: Fault, place: Place) {
        match fault {
            Fault::Kill | Fault::Terminate => {
                let down = self.rng.u64(100..1_200);
                let Some(member) = self.member(at, down + 1_000) else { return };
                self.add(at, if fault == Fault::Kill { Act::Kill(member) } else { Act::Terminate(member) });
                self.add(at + down, Act::Start(member));
            }
            Fault::Freeze => {
                let length = self.spell();
                let Some(member) = self.member(at, length) else { return };
                self.add(at, Act::Freeze(member, length));
                self.add(at + length, Act::Thaw(member));
            }
            Fault::Cut if place == Place::File => {
                if at < self.all_busy {
                    return;
                }
                let length = self.spell();
                self.all_busy = at + 3 * length;
                self.add(at, Act::Lock(length));
            }
            Fault::Cut => self.line(at, Side::Database),
            Fault::Downstream => self.line(at, Side::Downstream),
            Fault::Restart => {
                if at < self.all_busy {
                    return;
                }
                self.all_busy = at + 5_000;
                let kill = self.rng.bool();
                self.add(at, Act::Restart { kill });
            }
            Fault::Retune => {
                if at < self.retune_at {
                    return;
                }
                self.retune_at = at + 1_500;
                self.cap = match self.rng.u32(0..4) {
                    0 if self.cap > 0 => 0,
                    0 | 1 => CAP,
                    _ => self.rng.i64(1..=CAP_MOST),
                };
                self.add(at, Act::Retune(self.cap));
                // Never at 0 for long: the others are to find something to break.
                if self.cap == 0 {
                    self.cap = self.rng.i64(1..=CAP_MOST);
                    self.add(at + 1_500, Act::Retune(self.cap));
                    self.retune_at += 1_500;
                }
            }
            Fault::Edit => {
                if at < self.edit_at {
                    return;
                }
                self.edit_at = at + 3_500;
                let by = self.rng.i64(1..=3) * if self.rng.bool() { 1 } else { -1 };
                self.add(at, Act::Edit(by));
            }
            Fault::Clock => {
                if at < self.clock_at {
                    return;
                }
                // Coolings are held for as long as any may last; then there is to be some peace.
                self.clock_at = at + HOLD + 2_000;
                self.ahead = match self.rng.u32(0..3) {
                    0 => self.rng.i64(500..1_500),
                    1 => self.rng.i64(4_000..8_000),
                    _ => -self.rng.i64(3_000..6_000),
                };
                self.add(at, Act::Clock(self.ahead));
            }
        }
    }

    fn line(&mut self, at: u64, side: Side) {
        let line = match (self.rng.u32(0..5), side) {
            (0, _) => Line::Cut,
            // What comes later than the arrival bound allows would be a lie of the network's.
            (1, Side::Downstream) => Line::Slow(self.rng.u64(20..300)),
            (1, Side::Database) => Line::Slow(self.rng.u64(20..150)),
            (2, Side::Database) => Line::Forgotten,
            (3, _) => Line::Refused,
            _ => Line::Silent,
        };
        let length = match line {
            Line::Cut | Line::Forgotten => 100,
            _ => self.spell(),
        };
        let Some(member) = self.member(at, length) else { return };
        self.add(at, Act::Line(member, side, line, length));
        self.add(at + length, Act::Mend(member, side));
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |side: &Side| match side {
            Side::Database => "database",
            Side::Downstream => "downstream",
        };
        match self {
            Self::Kill(member) => write!(f, "kill -9 c{member}"),
            Self::Freeze(member, ms) => write!(f, "freeze c{member} for {ms} ms"),
            Self::Thaw(member) => write!(f, "thaw c{member}"),
            Self::Terminate(member) => write!(f, "terminate c{member}"),
            Self::Start(member) => write!(f, "start c{member}"),
            Self::Line(member, side, line, ms) => {
                let line = match line {
                    Line::Cut => "cut".to_owned(),
                    Line::Slow(by) => format!("{by} ms slower for {ms} ms"),
                    Line::Silent => format!("silent for {ms} ms"),
                    Line::Refused => format!("refused for {ms} ms"),
                    Line::Forgotten => "forgotten".to_owned(),
                };
                write!(f, "c{member}'s line to the {}: {line}", name(side))
            }
            Self::Mend(member, side) => write!(f, "mend c{member}'s line to the {}", name(side)),
            Self::Lock(ms) => write!(f, "hold the write lock for {ms} ms"),
            Self::Restart { kill: false } => write!(f, "restart the server"),
            Self::Restart { kill: true } => write!(f, "kill -9 the server and start it"),
            Self::Retune(max) => write!(f, "max_permits = {max}"),
            Self::Edit(by) => write!(f, "in_use = in_use {} {}", if *by < 0 { '-' } else { '+' }, by.abs()),
            Self::Clock(ms) => write!(f, "the database's clock {ms:+} ms"),
            Self::Cancel { running: true } => write!(f, "cancel a running task"),
            Self::Cancel { running: false } => write!(f, "cancel a waiting task"),
            Self::Retry => write!(f, "retry a failed or cancelled task"),
            Self::Enqueue(n, seed) => write!(f, "enqueue {n} (seed {seed:016x})"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{:>8.3}  {}", std::time::Duration::from_millis(step.at).as_secs_f64(), step.act)?;
        }
        write!(f, "{:>8.3}  the faults end", std::time::Duration::from_millis(self.end).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_seed_another() {
        let plan = |seed| Plan::new(seed, 60_000, None, Place::Server);
        assert_eq!(plan(7), plan(7));
        assert_eq!(plan(7).to_string(), plan(7).to_string());
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn every_fault_has_its_end_and_no_consumer_suffers_two_at_once() {
        for seed in 0..50 {
            let plan = Plan::new(seed, 60_000, None, Place::Server);
            let mut open = [None; MEMBERS];
            for Step { at, act } in &plan.steps {
                match act {
                    Act::Kill(member)
                    | Act::Terminate(member)
                    | Act::Freeze(member, _)
                    | Act::Line(member, ..) => {
                        assert_eq!(open[*member].replace(*at), None, "seed {seed}, {at}: {act}");
                    }
                    Act::Start(member) | Act::Thaw(member) | Act::Mend(member, _) => {
                        assert!(open[*member].take().is_some(), "seed {seed}, {at}: {act}");
                    }
                    _ => {}
                }
            }
            assert_eq!(open, [None; MEMBERS], "seed {seed}");
            assert!(plan.steps.iter().all(|step| step.at < plan.end));
        }
    }

    #[test]
    fn the_cap_and_the_clock_come_back() {
        for seed in 0..50 {
            let plan = Plan::new(seed, 60_000, None, Place::Server);
            let last =
                |of: fn(&Act) -> Option<i64>| plan.steps.iter().filter_map(|step| of(&step.act)).next_back();
            let cap = last(|act| if let Act::Retune(max) = act { Some(*max) } else { None });
            let clock = last(|act| if let Act::Clock(ms) = act { Some(*ms) } else { None });
            assert_eq!(cap.unwrap_or(CAP), CAP, "seed {seed}");
            assert_eq!(clock.unwrap_or(0), 0, "seed {seed}");
        }
    }

    #[test]
    fn one_kind_alone_and_nothing_a_database_cannot_suffer() {
        let kills = Plan::new(1, 30_000, Some(Fault::Kill), Place::File);
        assert!(kills.has(|act| matches!(act, Act::Kill(_))));
        assert!(!kills.has(|act| !matches!(act, Act::Kill(_) | Act::Start(_) | Act::Enqueue(..))));
        let minutes = 10 * 60_000;
        let file = Plan::new(1, minutes, None, Place::File);
        assert!(!file.has(|act| matches!(act, Act::Restart { .. } | Act::Line(_, Side::Database, ..))));
        assert!(file.has(|act| matches!(act, Act::Lock(_))));
        let url = Plan::new(1, minutes, None, Place::Url);
        assert!(!url.has(|act| matches!(act, Act::Restart { .. } | Act::Clock(_))));
    }

    #[test]
    fn minutes_show_hundreds_of_kills() {
        let plan = Plan::new(1, 5 * 60_000, None, Place::Server);
        let kills = plan.steps.iter().filter(|step| matches!(step.act, Act::Kill(_))).count();
        assert!(kills > 150, "{kills}");
    }
}
