//! The judge. It knows what the stub and the database say and what was done to them, and nothing of permitq's own code:
//! its SQL, its sweep and its list of allowed moves are its own.
//!
//! | | holds where |
//! |---|---|
//! | I1 cap | no call arrives while as many are in flight as any cap allows that was in force since a second before its claim; no permit is freed while its call still runs |
//! | I2 ledger | counter = running + cooling in every sample, but between an edit by hand and its repair, which comes within a pass; somebody looked all the time |
//! | I3 once | one recorded success per task, with an answered call behind it; one call per attempt; before each repeated call, an attempt that did not succeed |
//! | I4 terminal | final states stay but for a person's retry; fences rise; attempts rise, within the maximum; each change begins where the one before ended, and the last is how the task stands |
//! | I5 progress | something was called; after the faults all is done within the bound; no consumer ends by itself, but where it found no database at its start |
//! | I6 log | each claim has its row, with a consumer, and each call its claim |
//! | I7 loss | every acknowledged task is there, and nobody else's |
//! | P5 | permits that a fault touched are free within the bound |
//!
//! Its clock is the stub's. The database's instants are brought to it by the steps that are known; where a step leaves two
//! ways to read one, the kinder counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::evidence::{Attempt, Call, Evidence};
use super::journal::Edit;
use super::plan::Fault;
use super::scale::{ARRIVAL, HOLD, MACHINE, RECOVERY, REPAIR, YOUTH, drain};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `I1` to `I7`, `P5`.
    pub promise: &'static str,
    /// By what.
    pub what: String,
    /// It came about after all, only too late: a machine that is too busy can do that as well.
    pub late: bool,
}

/// How long the permits that a kind of fault touched took to be free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Faults of this kind.
    pub faults: usize,
    /// Those that met a permit in use.
    pub holding: usize,
    /// Milliseconds.
    pub median_ms: u64,
    /// Milliseconds.
    pub max_ms: u64,
    /// Milliseconds; longer only while the database was away or held up by somebody frozen, its clock had stepped, or a
    /// further consumer was struck.
    pub bound_ms: u64,
    /// Those that took longer because of that.
    pub stalled: usize,
}

/// What the judge found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Calls above the cap.
    pub overruns: usize,
    /// Calls above the cap that were claimed while a hand had lowered the counter.
    pub overruns_after_edits: usize,
    /// Calls that a frozen consumer sent after its thaw, having looked at the clock before: no promise covers them.
    pub paused_sends: usize,
    /// Tasks that are gone, or never ended.
    pub lost: usize,
    /// Repeated calls, with an attempt before that did not succeed.
    pub duplicates_explained: usize,
    /// Repeated calls without.
    pub duplicates_unexplained: usize,
    /// Samples between an edit and its repair that did not balance.
    pub samples_excused: usize,
    /// The slowest repair of the counter, in milliseconds.
    pub repair_max_ms: u64,
    /// Its bound.
    pub repair_bound_ms: u64,
    /// From the last fault until all was done, in milliseconds.
    pub settled_ms: Option<u64>,
    /// By kind of fault.
    pub recovery: BTreeMap<&'static str, Recovery>,
    /// What does not hold.
    pub violations: Vec<Violation>,
}

/// After this long a lowered cap binds.
const GRACE: u64 = 1_000;
/// Between two looks at the ledger: a client's patience, and a moment.
const BLIND: u64 = 12_000;
/// How far two clocks of one host may differ.
const CLOCKS: u64 = 50;

/// Judges all of it.
pub(super) fn check(evidence: &Evidence) -> Findings {
    let mut judge = Judge::new(evidence);
    judge.cap();
    judge.permits_outlive_calls();
    judge.ledger();
    judge.once();
    judge.terminal();
    judge.progress();
    judge.log();
    judge.loss();
    judge.recovery();
    judge.found
}

/// The earliest and the latest reading of an instant.
#[derive(Clone, Copy, Debug)]
struct When {
    earliest: u64,
    latest: u64,
}

struct Judge<'a> {
    seen: &'a Evidence,
    attempts: HashMap<(i64, i64), &'a Attempt>,
    /// Edits with the end of the sample that showed the repair.
    edits: Vec<(Edit, u64)>,
    found: Findings,
}

impl<'a> Judge<'a> {
    fn new(seen: &'a Evidence) -> Self {
        let attempts =
            seen.attempts.iter().map(|attempt| ((attempt.task, attempt.claim_no), attempt)).collect();
        let repaired = |edit: &Edit| {
            let from = edit.acked.unwrap_or(edit.sent);
            let balanced = seen.samples.iter().find(|sample| sample.at >= from && sample.balances());
            balanced.map_or(u64::MAX, |sample| sample.until)
        };
        let edits = seen.journal.edits.iter().map(|edit| (*edit, repaired(edit))).collect();
        Self { seen, attempts, edits, found: Findings { repair_bound_ms: REPAIR, ..Findings::default() } }
    }

    fn breach(&mut self, promise: &'static str, what: String) {
        self.found.violations.push(Violation { promise, what, late: false });
    }

    fn late(&mut self, promise: &'static str, what: String) {
        self.found.violations.push(Violation { promise, what, late: true });
    }

    /// The database's instant on our clock; `None` where no reading of it makes sense.
    fn when(&self, instant: i64) -> Option<When> {
        let steps = std::iter::once((0, 0)).chain(self.seen.journal.steps.iter().copied());
        let mut steps: Vec<_> = steps.collect();
        steps.push((u64::MAX, 0));
        let readings = steps.windows(2).filter_map(|pair| {
            let [(from, ahead), (until, _)] = pair else { return None };
            let at = u64::try_from(instant - self.seen.zero - ahead + 2).ok()?;
            (at + 200 >= *from && at <= until.saturating_add(200)).then_some(at)
        });
        let readings: Vec<_> = readings.collect();
        Some(When { earliest: *readings.iter().min()?, latest: *readings.iter().max()? })
    }

    fn attempt(&self, call: &Call) -> Option<&'a Attempt> {
        self.attempts.get(&(call.task, call.claim_no)).copied()
    }

    fn claimed(&self, call: &Call) -> When {
        let claimed = self.attempt(call).and_then(|attempt| self.when(attempt.claimed));
        claimed.unwrap_or(When { earliest: call.start, latest: call.start })
    }

    /// The highest cap that may have been in force in this time.
    fn highest_cap(&self, from: u64, until: u64) -> usize {
        let caps = &self.seen.journal.caps;
        let ends = caps.iter().skip(1).map(|next| next.acked).chain([u64::MAX]);
        let in_force = caps.iter().zip(ends).filter(|(cap, end)| cap.sent <= until && *end >= from);
        let highest = in_force.map(|(cap, _)| cap.max).max().unwrap_or_default();
        usize::try_from(highest).unwrap_or_default()
    }

    /// Whether its owner stood still between the claim and the call.
    fn was_paused(&self, call: &Call, claimed: When) -> bool {
        let member = self.attempt(call).and_then(|attempt| member(&attempt.consumer));
        self.seen.journal.struck.iter().any(|struck| {
            struck.what == Fault::Freeze
                && struck.member == member
                && struck.at <= call.start
                && struck.until >= claimed.earliest
        })
    }

    fn cap(&mut self) {
        let mut calls: Vec<&Call> = self.seen.calls.iter().collect();
        calls.sort_by_key(|call| call.start);
        // Calls in flight: when they end, and the edits that they were claimed under while the counter was too low.
        let mut in_flight: Vec<(u64, Vec<usize>)> = Vec::new();
        for call in calls {
            in_flight.retain(|(end, _)| *end > call.start);
            let claimed = self.claimed(call);
            if call.start > claimed.latest + ARRIVAL + MACHINE / 2 {
                if self.was_paused(call, claimed) {
                    // It counts for nobody else's overrun.
                    self.found.paused_sends += 1;
                    continue;
                }
                let late = call.start - claimed.latest;
                self.late("I1", format!("{} arrived {late} ms after its claim", name(call)));
            }
            let under = |(edit, repaired): &(Edit, u64)| {
                edit.by < 0 && claimed.latest >= edit.sent && claimed.earliest <= *repaired
            };
            let edited = self.edits.iter().enumerate().filter(|(_, edit)| under(edit));
            let edited: Vec<usize> = edited.map(|(n, _)| n).collect();
            let n = in_flight.len() + 1;
            let allowed = self.highest_cap(claimed.earliest.saturating_sub(GRACE), call.start);
            if n > allowed || call.refused {
                let all = || in_flight.iter().map(|(_, edited)| edited).chain([&edited]);
                let by_hand = all().filter(|edited| !edited.is_empty()).count();
                // An edit opens the cap by as many as it took away, and no more.
                let open: BTreeSet<usize> = all().flatten().copied().collect();
                let open: u64 = open.iter().map(|n| self.edits[*n].0.by.unsigned_abs()).sum();
                let open = by_hand.min(usize::try_from(open).unwrap_or(usize::MAX));
                if open > 0 && n <= allowed + open {
                    self.found.overruns_after_edits += 1;
                } else {
                    self.found.overruns += 1;
                    self.breach(
                        "I1",
                        format!("{} at {} ms was number {n} of {allowed}", name(call), call.start),
                    );
                }
            }
            if !call.refused {
                in_flight.push((call.end.unwrap_or(u64::MAX), edited));
            }
        }
    }

    /// What makes the cap hold, whether or not somebody took the permit at once.
    fn permits_outlive_calls(&mut self) {
        for call in &self.seen.calls {
            let released = self.attempt(call).and_then(|attempt| attempt.released);
            let (Some(end), Some(released)) = (call.end, released.and_then(|released| self.when(released)))
            else {
                continue;
            };
            let claimed = self.claimed(call);
            let late = call.start > claimed.latest + ARRIVAL + MACHINE / 2;
            if released.latest + CLOCKS < end && !late {
                let early = end - released.latest;
                self.breach("I1", format!("{}: its permit was freed {early} ms before its end", name(call)));
            }
        }
    }

    fn ledger(&mut self) {
        for sample in &self.seen.samples {
            if sample.in_use < 0 {
                self.breach("I2", format!("in_use was {} at {} ms", sample.in_use, sample.at));
            }
            if sample.balances() {
                continue;
            }
            let excused =
                self.edits.iter().any(|(edit, repaired)| edit.sent <= sample.until && sample.at <= *repaired);
            if excused {
                self.found.samples_excused += 1;
            } else {
                let (in_use, running, cooling) = (sample.in_use, sample.running, sample.cooling);
                let what =
                    format!("in_use {in_use}, running {running}, cooling {cooling} at {} ms", sample.at);
                self.breach("I2", what);
            }
        }
        for (edit, repaired) in self.edits.clone() {
            if repaired == u64::MAX {
                self.breach("I2", format!("the edit at {} ms was never repaired", edit.sent));
                continue;
            }
            let Some(acked) = edit.acked else { continue };
            let took = repaired.saturating_sub(acked);
            self.found.repair_max_ms = self.found.repair_max_ms.max(took);
            if took > REPAIR + self.away(acked, repaired) + self.held_up(acked, repaired) {
                self.late("I2", format!("the edit at {acked} ms was repaired after {took} ms"));
            }
        }
        if let Some(last) = self.seen.samples.last()
            && last.in_use != 0
        {
            self.breach("I2", format!("at rest in_use is {}", last.in_use));
        }
        let ends = self.seen.samples.iter().map(|sample| sample.until);
        let begins = self.seen.samples.iter().map(|sample| sample.at);
        let blind = std::iter::once(0).chain(ends).zip(begins.chain([self.seen.end]));
        for (from, until) in blind.collect::<Vec<_>>() {
            if until > from + BLIND + self.away(from, until) {
                self.breach("I2", format!("nobody saw the ledger from {from} to {until} ms"));
            }
        }
    }

    fn once(&mut self) {
        let mut by_task: BTreeMap<i64, Vec<&Call>> = BTreeMap::new();
        for call in &self.seen.calls {
            by_task.entry(call.task).or_default().push(call);
        }
        for calls in by_task.values_mut() {
            calls.sort_by_key(|call| call.start);
            for pair in calls.windows(2) {
                let [before, call] = pair else { continue };
                let outcome = self.attempt(before).map(|attempt| attempt.outcome.as_str());
                let same = before.claim_no == call.claim_no;
                if same || matches!(outcome, None | Some("succeeded")) {
                    self.found.duplicates_unexplained += 1;
                    let why = if same { "the same attempt" } else { outcome.unwrap_or("nothing in the log") };
                    self.breach("I3", format!("{} repeats one with {why} behind it", name(call)));
                } else {
                    self.found.duplicates_explained += 1;
                }
            }
        }
        let mut succeeded: HashMap<i64, usize> = HashMap::new();
        for attempt in self.seen.attempts.iter().filter(|attempt| attempt.outcome == "succeeded") {
            *succeeded.entry(attempt.task).or_default() += 1;
            let answered = by_task.get(&attempt.task).into_iter().flatten().any(|call| {
                call.claim_no == attempt.claim_no
                    && call.status.is_some_and(|status| (200..300).contains(&status))
            });
            if !answered {
                let what = format!("task {} #{} succeeded without an answer", attempt.task, attempt.claim_no);
                self.breach("I3", what);
            }
        }
        for task in &self.seen.tasks {
            let times = succeeded.get(&task.id).copied().unwrap_or_default();
            if times != usize::from(task.state == "succeeded") {
                self.breach("I3", format!("task {} is {}, with {times} successes", task.id, task.state));
            }
        }
    }

    fn terminal(&mut self) {
        let is_final = |state: &str| matches!(state, "succeeded" | "failed" | "cancelled");
        let maximum: HashMap<_, _> =
            self.seen.tasks.iter().filter_map(|task| Some((task.id, task.max_attempts?))).collect();
        let mut wishes: HashMap<i64, usize> = HashMap::new();
        for task in &self.seen.journal.retried {
            *wishes.entry(*task).or_default() += 1;
        }
        let mut stands: HashMap<i64, (String, i64, i64)> = HashMap::new();
        for change in &self.seen.changes {
            let ([claim, next_claim], [attempts, next_attempts]) = (change.claim_no, change.attempts);
            let (from, to) = (change.from.as_str(), change.to.as_str());
            let revived = is_final(from) && from != "succeeded" && matches!(to, "pending" | "scheduled");
            let moves = match (from, to) {
                ("pending", "running") => next_claim == claim + 1 && next_attempts == attempts + 1,
                ("scheduled", "pending") | ("pending" | "scheduled", "cancelled") => {
                    next_claim == claim && next_attempts == attempts
                }
                // Handing back costs no attempt.
                ("running", "pending" | "scheduled") => {
                    next_claim == claim && (attempts - 1..=attempts).contains(&next_attempts)
                }
                ("running", to) if is_final(to) => {
                    next_claim == claim && (attempts - 1..=attempts).contains(&next_attempts)
                }
                _ if revived => {
                    let left = wishes.entry(change.task).or_default();
                    let asked = *left > 0;
                    *left = left.saturating_sub(1);
                    asked && next_claim == claim && next_attempts == 0
                }
                _ => false,
            };
            let within = maximum.get(&change.task).is_none_or(|most| next_attempts <= *most);
            let here = (change.from.clone(), claim, attempts);
            let new = matches!(from, "pending" | "scheduled") && (claim, attempts) == (0, 0);
            let gapless = stands.get(&change.task).map_or(new, |before| *before == here);
            if !moves || !within || !gapless {
                self.breach("I4", format!("{change:?}"));
            }
            stands.insert(change.task, (change.to.clone(), next_claim, next_attempts));
        }
        for task in &self.seen.tasks {
            let here = (task.state.clone(), task.claim_no, task.attempts);
            match stands.get(&task.id) {
                Some(last) if *last == here => {}
                None if task.claim_no == 0 && matches!(&*task.state, "pending" | "scheduled") => {}
                last => self.breach("I4", format!("task {} is {here:?}; its last change: {last:?}", task.id)),
            }
        }
    }

    fn progress(&mut self) {
        let (end, bound) = (self.seen.end, drain(self.seen.rest));
        if self.seen.calls.is_empty() {
            self.breach("I5", "nothing was ever called".to_owned());
        }
        match self.seen.settled {
            Some(settled) => {
                let took = settled.saturating_sub(end);
                self.found.settled_ms = Some(took);
                if took > bound {
                    self.late("I5", format!("{took} ms after the faults, not {bound}, all was done"));
                }
            }
            None => self.breach("I5", format!("{bound} ms after the faults not all was done")),
        }
        let at_work: HashSet<_> = self.seen.at_work.iter().copied().collect();
        for exit in &self.seen.journal.exits {
            // Code 1 is how one ends that finds no database when it starts.
            if at_work.contains(&i64::from(exit.pid)) || exit.code != Some(1) {
                let what = format!("a consumer ended by itself at {} ms with code {:?}", exit.at, exit.code);
                self.breach("I5", what);
            }
        }
        for code in self.seen.codes.iter().filter(|code| **code != Some(0)) {
            self.breach("I5", format!("an idle consumer was told to end, and did with code {code:?}"));
        }
    }

    fn log(&mut self) {
        for call in &self.seen.calls {
            match self.attempt(call) {
                Some(attempt) if attempt.consumer.is_empty() => {
                    self.breach("I6", format!("{} has no consumer", name(call)));
                }
                Some(_) => {}
                None => self.breach("I6", format!("{} at {} ms is not in the log", name(call), call.start)),
            }
        }
        for task in &self.seen.tasks {
            for claim_no in 1..=task.claim_no {
                let Some(attempt) = self.attempts.get(&(task.id, claim_no)).copied() else {
                    self.breach("I6", format!("task {} #{claim_no} is not in the log", task.id));
                    continue;
                };
                let times = (self.when(attempt.claimed), self.when(attempt.ended));
                if attempt.released.is_none() && self.seen.settled.is_some() {
                    self.breach("I6", format!("task {} #{claim_no} never gave its permit back", task.id));
                } else if matches!(times, (Some(claimed), Some(ended)) if claimed.earliest > ended.latest + CLOCKS)
                {
                    self.breach("I6", format!("task {} #{claim_no} ended before it was claimed", task.id));
                }
            }
        }
    }

    fn loss(&mut self) {
        let there: BTreeSet<&str> = self.seen.tasks.iter().map(|task| task.key.as_str()).collect();
        let (acked, doubtful) = (&self.seen.journal.acked, &self.seen.journal.doubtful);
        for key in acked.iter().filter(|key| !there.contains(key.as_str())) {
            self.found.lost += 1;
            self.breach("I7", format!("{key} was enqueued and is not there"));
        }
        for key in there.iter().filter(|key| !acked.contains(**key) && !doubtful.contains(**key)) {
            self.breach("I7", format!("{key:?} is there, and nobody enqueued it"));
        }
        for task in &self.seen.tasks {
            if !matches!(task.state.as_str(), "succeeded" | "failed" | "cancelled") {
                self.found.lost += 1;
                let (id, state, attempts) = (task.id, &task.state, task.attempts);
                self.breach("I7", format!("task {id} stays {state} after {attempts} attempts"));
            }
        }
    }

    fn recovery(&mut self) {
        let held: Vec<_> = self
            .seen
            .attempts
            .iter()
            .filter_map(|attempt| {
                let claimed = self.when(attempt.claimed)?.latest;
                let ended = self.when(attempt.ended)?.earliest;
                let released = self.when(attempt.released?)?.earliest;
                Some((member(&attempt.consumer), claimed, ended, released))
            })
            .collect();
        let mut took: BTreeMap<Fault, Vec<u64>> = BTreeMap::new();
        for struck in &self.seen.journal.struck {
            let entry = self.found.recovery.entry(struck.what.name()).or_default();
            entry.faults += 1;
            entry.bound_ms = RECOVERY;
            let touched = held.iter().filter(|(member, claimed, ended, _)| {
                (struck.member.is_none() || *member == struck.member)
                    && *claimed <= struck.at
                    && *ended >= struck.at
            });
            let free = match struck.what {
                // Running calls end by themselves: nothing is taken from anybody.
                Fault::Retune => None,
                // From when it was committed until it was right again: I2 judges it.
                Fault::Edit => {
                    let edit = self.edits.iter().find(|(edit, _)| edit.sent == struck.at);
                    let repaired =
                        edit.map(|(_, repaired)| *repaired).filter(|repaired| *repaired < u64::MAX);
                    if let Some(repaired) = repaired {
                        took.entry(struck.what).or_default().push(repaired.saturating_sub(struck.until));
                    }
                    None
                }
                _ => touched.map(|(_, _, _, released)| *released).max(),
            };
            let Some(free) = free else { continue };
            took.entry(struck.what).or_default().push(free.saturating_sub(struck.at));
            if free.saturating_sub(struck.at) > RECOVERY {
                let more = self.stalled(struck.at, free) + self.held_up(struck.at, free);
                if free - struck.at <= RECOVERY + more + self.struck_again(struck.at, free) {
                    if let Some(entry) = self.found.recovery.get_mut(struck.what.name()) {
                        entry.stalled += 1;
                    }
                } else {
                    let (what, late) = (struck.what.name(), free - struck.at);
                    self.late("P5", format!("{late} ms after the {what} at {} ms all was free", struck.at));
                }
            }
        }
        for (what, mut took) in took {
            took.sort_unstable();
            if let Some(entry) = self.found.recovery.get_mut(what.name()) {
                entry.holding = took.len();
                entry.median_ms = took[took.len() / 2];
                entry.max_ms = took.last().copied().unwrap_or_default();
                entry.bound_ms = if what == Fault::Edit { REPAIR } else { RECOVERY };
            }
        }
    }

    /// Who has just started leaves what cools to older consumers until they are gone. Where one of those was struck
    /// meanwhile, its lease has to pass as well, but not one lease after the other: in the end the young are old enough.
    fn struck_again(&self, from: u64, until: u64) -> u64 {
        let disables = |what| matches!(what, Fault::Kill | Fault::Freeze | Fault::Cut);
        let struck = &self.seen.journal.struck;
        let again = struck.iter().any(|next| disables(next.what) && next.at > from && next.at < until);
        if again { YOUTH } else { 0 }
    }

    /// How long of this time nobody could work with the database.
    fn away(&self, from: u64, until: u64) -> u64 {
        // Everybody connects anew, and misses a pass.
        let outages = self.seen.journal.outages.iter().map(|outage| (outage.from, outage.until + MACHINE));
        overlap(outages, from, until)
    }

    /// How long of this time somebody may have held everybody up who was frozen or cut off in the midst of a transaction.
    fn held_up(&self, from: u64, until: u64) -> u64 {
        let struck = self.seen.journal.struck.iter();
        let silent =
            struck.filter(|one| matches!(one.what, Fault::Freeze | Fault::Cut) && one.member.is_some());
        let silent: Vec<_> = silent.map(|one| (one.at, one.until + MACHINE)).collect();
        // One after the other, in the worst case: each waits for the lock that the one before it holds.
        let each = silent.iter().map(|span| overlap([*span].into_iter(), from, until).min(self.seen.idle));
        each.sum::<u64>().min(overlap(silent.iter().copied(), from, until))
    }

    /// How long of this time no permit could be expected to come free: that, and after the clock's steps what is held for
    /// certainty's sake. A step back also moves every stored bound away.
    fn stalled(&self, from: u64, until: u64) -> u64 {
        let journal = &self.seen.journal;
        let outages = journal.outages.iter().map(|outage| (outage.from, outage.until + MACHINE));
        let mut before = 0;
        let mut back = 0;
        let mut held = Vec::new();
        for (at, ahead) in &journal.steps {
            // Bounds that were stored before a step back are that much longer, and so is the longest of them.
            let longer = u64::try_from(before - ahead).unwrap_or_default();
            held.push((*at, at + HOLD + longer + MACHINE));
            if *at <= until && *at + HOLD + longer >= from {
                back += longer;
            }
            before = *ahead;
        }
        overlap(outages.chain(held), from, until) + back
    }
}

/// The number of `c3` in `c3-0199…`.
fn member(consumer: &str) -> Option<usize> {
    consumer.split('-').next()?.strip_prefix('c')?.parse().ok()
}

fn name(call: &Call) -> String {
    format!("the call of task {} #{}", call.task, call.claim_no)
}

/// How much of this time these spans cover together.
fn overlap(spans: impl Iterator<Item = (u64, u64)>, from: u64, until: u64) -> u64 {
    let clipped = spans.map(|(start, end)| (start.max(from), end.min(until)));
    let mut spans: Vec<_> = clipped.filter(|(start, end)| start < end).collect();
    spans.sort_unstable();
    let (mut covered, mut reached) = (0, from);
    for (start, end) in spans {
        covered += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    covered
}

#[cfg(test)]
mod tests;
