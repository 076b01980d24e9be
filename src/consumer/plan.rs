//! What is the most useful thing the idle store can do now? Ends before claims, claims before looks: a freed permit
//! starts its next call in the same transaction, without a look.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant as Moment;

use super::Services;
use super::job::{Job, PROMOTION};
use super::turn::{Loop, registration};
use crate::shutdown::Stage;
use crate::store::{Left, Look, Policy};

/// When to look for work, and what the last look showed.
#[derive(Debug)]
pub(super) struct Looking {
    /// Look again at this moment.
    pub(super) at: Moment,
    /// A task is due at this moment, as far as is known: no pause lasts beyond it.
    due: Option<Moment>,
    poll: Duration,
    looked: Moment,
    /// A wake-up came after the last look was sent.
    woken: bool,
    /// A commit of others is told to us, and one of ours to them.
    wake_connected: bool,
    /// Permits that others should have for a while: see [`Looking::let_go`]. We may be back for them at `back_at`.
    let_go_at: Moment,
    back_at: Moment,
    crowded: Vec<String>,
    /// Kinds with due tasks that we serve, by semaphore.
    ready: Vec<(String, Vec<Policy>)>,
    /// Semaphores with a free permit and a due task, and our share of the free permits.
    free: VecDeque<(String, usize)>,
    promote: bool,
    /// Downstreams that were down and may be probed: semaphore, downstream, and whose tasks would do.
    probes: VecDeque<(String, String, Vec<Policy>)>,
}

/// While tasks wait for permits, a wake-up is most often another consumer's exchange: look no more often than this.
const CROWDED: Duration = Duration::from_millis(100);
/// Between two permits that are let go, and for how long others have the first right to one: as long as it takes to wake
/// them. Without a wake-up they come at their own poll, which costs more, and is done less often.
const LET_GO: Duration = Duration::from_secs(1);
const LET_GO_FOR: Duration = Duration::from_millis(20);
const LET_GO_UNTOLD: Duration = Duration::from_secs(5);
const LET_GO_UNTOLD_FOR: Duration = Duration::from_millis(200);
/// Where a wake-up is connected, an idle consumer looks at least this often.
const IDLE: Duration = Duration::from_secs(40);

impl Looking {
    pub(super) fn new(poll: Duration) -> Self {
        let now = Moment::now();
        Self {
            at: now,
            due: None,
            poll,
            looked: now,
            woken: false,
            wake_connected: false,
            let_go_at: now,
            back_at: now,
            crowded: Vec::new(),
            ready: Vec::new(),
            free: VecDeque::new(),
            promote: false,
            probes: VecDeque::new(),
        }
    }

    /// Something was committed: there may be work.
    pub(super) fn woken(&mut self) {
        self.woken = true;
        let soon = if self.ready.is_empty() { Moment::now() } else { self.looked + CROWDED };
        self.at = self.at.min(soon.max(self.back_at));
    }

    /// A task of ours is due after so long.
    pub(super) fn later(&mut self, delay: Duration) {
        let at = Moment::now() + delay;
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        self.at = self.at.min(at);
    }

    /// `held` answers how many permits of a semaphore we hold.
    pub(super) fn saw(
        &mut self,
        look: Look,
        services: &Services,
        held: impl Fn(&str) -> usize,
        wake_connected: bool,
    ) {
        let now = Moment::now();
        self.looked = now;
        self.wake_connected = wake_connected;
        self.crowded.clear();
        self.promote = look.next_due.is_some_and(|due| due.is_zero());
        self.ready.clear();
        self.free.clear();
        self.probes.clear();
        let mut probe_in: Option<Duration> = None;
        let alive = look.alive.max(1);
        for semaphore in look.semaphores {
            let mut policies = services.policies(&semaphore);
            let kinds = policies.len();
            let free = semaphore.max_permits - semaphore.in_use;
            let held = i64::try_from(held(&semaphore.name)).unwrap_or(i64::MAX);
            let hoards = held.saturating_mul(alive) > semaphore.max_permits;
            if hoards || kinds < semaphore.kinds.len() {
                self.crowded.push(semaphore.name.clone());
            }
            for paused in &look.paused {
                let held = policies
                    .extract_if(.., |policy| paused.holds(&semaphore.name, &policy.kind, &policy.downstream))
                    .collect::<Vec<_>>();
                let Some(wait) = paused.probe_in().filter(|_| !held.is_empty()) else { continue };
                if wait.is_zero() && free > 0 {
                    self.probes.push_back((semaphore.name.clone(), paused.name.clone(), held));
                } else if !wait.is_zero() {
                    probe_in = Some(probe_in.map_or(wait, |other| other.min(wait)));
                }
            }
            if policies.is_empty() {
                continue;
            }
            if free > 0 {
                // Leave the others theirs; what nobody takes is there at the next look.
                let share = usize::try_from((free + alive - 1) / alive).unwrap_or(1);
                self.free.push_back((semaphore.name.clone(), share));
            }
            self.ready.push((semaphore.name, policies));
        }
        let pause = if self.ready.is_empty() && wake_connected { self.poll.max(IDLE) } else { self.poll };
        self.at = now + pause.mul_f64(0.75 + 0.25 * fastrand::f64());
        if std::mem::take(&mut self.woken) {
            self.at = if self.ready.is_empty() { now } else { now + CROWDED };
        }
        if let Some(wait) = probe_in {
            self.at = self.at.min(now + wait.mul_f64(1.0 + 0.1 * fastrand::f64()));
        }
        // What is overdue is promoted first.
        self.due = look.next_due.filter(|due| !due.is_zero()).map(|due| now + due);
        self.at = self.due.map_or(self.at, |due| self.at.min(due));
    }

    /// Look again: at once, or after others have done it who are at it right now.
    pub(super) fn promoted(&mut self, promoted: u64) {
        self.promote = promoted == PROMOTION;
        self.at = Moment::now() + if promoted == 0 { CROWDED / 10 } else { Duration::ZERO };
    }

    /// Fewer tasks than wanted: no more are due, or others took or lock them, or the cap was lowered. A look tells; not at
    /// once where nothing was won, or a lock held by somebody else would make us spin.
    pub(super) fn ran_short(&mut self, semaphore: &str, won: usize) {
        self.ready.retain(|(name, _)| name != semaphore);
        let soon = if won > 0 { Moment::now() } else { self.looked + CROWDED };
        self.at = self.due.map_or(soon, |due| soon.min(due));
    }

    /// Now and then a hand-over lets one permit go, where others wait for it: they serve kinds that we do not, or we hold
    /// more than our share, as whoever holds any does where permits are fewer than consumers. So that it costs next to
    /// nothing, a permit is kept for a while first, and whoever lets it go comes back only after the others had their chance.
    pub(super) fn let_go(&mut self, semaphore: &str) -> bool {
        let now = Moment::now();
        let due = now >= self.let_go_at && self.crowded.iter().any(|name| name == semaphore);
        if due {
            self.keep_for_now();
            self.back_at = now + if self.wake_connected { LET_GO_FOR } else { LET_GO_UNTOLD_FOR };
            self.at = self.at.max(self.back_at);
        }
        due
    }

    /// What was just claimed, or kept, is not let go at once.
    pub(super) fn keep_for_now(&mut self) {
        let pause = if self.wake_connected { LET_GO } else { LET_GO_UNTOLD };
        self.let_go_at = Moment::now() + pause.mul_f64(0.75 + 0.5 * fastrand::f64());
    }

    /// All that was our share of the free permits: there may be more. Let the others have theirs first.
    pub(super) fn got_all(&mut self) {
        let soon = Moment::now() + Duration::from_millis(5).mul_f64(1.0 + 2.0 * fastrand::f64());
        self.at = self.at.min(soon);
    }

    fn policies(&self, semaphore: &str) -> Vec<Policy> {
        let ready = self.ready.iter().find(|(name, _)| name == semaphore);
        ready.map(|(_, policies)| policies.clone()).unwrap_or_default()
    }
}

impl Loop {
    /// The next job for the idle store, if there is one.
    pub(super) fn plan(&mut self) -> Option<Job> {
        let stage = self.shutdown.stage();
        let Some(id) = self.id.clone() else {
            return match stage {
                Stage::Run => Some(Job::Register(registration(&self.options, &self.services))),
                _ => self.record().or_else(|| {
                    // Nobody to take leave of.
                    self.left = self.is_done();
                    None
                }),
            };
        };
        if self.reconcile {
            self.reconcile = false;
            let known = self.known(&id).into_iter().collect();
            return Some(Job::Reconcile { consumer: id, known });
        }
        // Short calls in many slots end without a pause; looks must come through all the same.
        if self.may_claim() && (self.looking.promote || Moment::now() >= self.looking.at + self.options.poll)
        {
            return self.claim();
        }
        if let Some(job) = self.record() {
            return Some(job);
        }
        if stage > Stage::Run {
            return if self.is_done() {
                Some(Job::Leave { consumer: id, how: Left::Gone })
            } else if self.told_draining {
                None
            } else {
                Some(Job::Leave { consumer: id, how: Left::Draining })
            };
        }
        self.claim()
    }

    /// Ends first. The permits they free are handed over in the same transaction.
    fn record(&mut self) -> Option<Job> {
        if let Some((consumer, first)) = self.ended.first() {
            let (consumer, semaphore) = (consumer.clone(), first.semaphore.clone());
            let mut ended = Vec::new();
            let mut rest = Vec::new();
            for (owner, end) in self.ended.drain(..) {
                if ended.len() < self.batch && owner == consumer && end.semaphore == semaphore {
                    ended.push(end);
                } else {
                    rest.push((owner, end));
                }
            }
            self.ended = rest;
            let freed = ended.iter().filter(|end| end.settlement.cooling.is_none()).count();
            let ours = self.may_claim() && self.id.as_ref() == Some(&consumer);
            let policies = if ours { self.looking.policies(&semaphore) } else { Vec::new() };
            let mut want =
                if policies.is_empty() || self.record_only { 0 } else { freed.min(self.free_slots()) };
            if want > 0 && self.looking.let_go(&semaphore) {
                want -= 1;
            }
            return Some(Job::Exchange { consumer, semaphore, ended, want, policies, probe: None });
        }
        if let Some((downstream, probe)) = self.passed_probe() {
            return Some(Job::Reopen { downstream, probe });
        }
        self.late.pop().map(|(consumer, ended)| Job::Late { consumer, ended })
    }

    fn claim(&mut self) -> Option<Job> {
        let free_slots = self.free_slots();
        let consumer = self.id.clone().filter(|_| self.may_claim())?;
        if self.looking.promote {
            self.looking.promote = false;
            return Some(Job::Promote);
        }
        if free_slots > 0
            && let Some((semaphore, share)) = self.looking.free.pop_front()
        {
            let policies = self.looking.policies(&semaphore);
            let want = share.min(free_slots);
            let (ended, probe) = (Vec::new(), None);
            return Some(Job::Exchange { consumer, semaphore, ended, want, policies, probe });
        }
        if free_slots > 0
            && let Some((semaphore, downstream, policies)) = self.looking.probes.pop_front()
        {
            let (ended, probe) = (Vec::new(), Some(downstream));
            return Some(Job::Exchange { consumer, semaphore, ended, want: 1, policies, probe });
        }
        // Also while every slot is busy: a hand-over goes by what the last look showed.
        (Moment::now() >= self.looking.at).then(|| {
            self.looking.woken = false;
            Job::Look(self.services.semaphores())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SemaphoreLook;

    #[test]
    fn no_pause_lasts_beyond_the_next_due_task() {
        let ms = Duration::from_millis;
        let mut looking = Looking::new(Duration::from_secs(1));
        let semaphores = vec![SemaphoreLook {
            name: "default".to_owned(),
            max_permits: 4,
            in_use: 0,
            kinds: vec!["call".to_owned()],
        }];
        let look = Look { semaphores, alive: 1, next_due: Some(ms(7)), paused: Vec::new() };
        looking.saw(look, &Services::default(), |_| 0, true);
        let due = looking.looked + ms(7);
        assert_eq!(looking.at, due);
        // A hand-over that found no further task, as after every single one.
        looking.ran_short("default", 0);
        assert_eq!(looking.at, due);
        looking.later(ms(1));
        let retry = looking.at;
        assert!(retry < due);
        looking.ran_short("default", 0);
        assert_eq!(looking.at, retry);
        // What was due is seen by the next look, which knows of no other.
        looking.saw(Look::default(), &Services::default(), |_| 0, true);
        looking.ran_short("default", 0);
        assert_eq!(looking.at, looking.looked + CROWDED);
    }
}
