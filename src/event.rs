//! Things that happen, as one enum. Logs, metrics and the dashboard all listen to it.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::schedule::Fate;
use crate::model::{Attempt, Settlement, Why};

/// Something that happened in this process.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A consumer registered.
    Registered { consumer: &'a str, slots: usize },
    /// A claim was won.
    Claimed { attempt: Attempt, kind: &'a str, semaphore: &'a str },
    /// An attempt ended and is recorded.
    Ended { attempt: Attempt, settlement: &'a Settlement },
    /// A downstream was found down, and is left alone; or up again.
    Downstream { downstream: &'a str, down: bool },
    /// A claim turned out to be somebody else's.
    Lost { attempt: Attempt },
    /// The downstream answered after the claim was lost.
    LateAnswer { attempt: Attempt, kept: bool },
    /// Claims whose answer never arrived were given back.
    HandedBack { attempts: usize },
    /// This consumer was declared gone and goes on under a new id.
    Fenced { consumer: &'a str },
    /// A loop failed and tries again.
    Trouble { what: &'a str, error: &'a dyn std::error::Error, again_in: Duration },
    /// A shutdown began.
    Draining { running: usize },
    /// Waiting is over; running calls are given up.
    GivingUp { running: usize },
    /// A consumer was declared gone by the reclaimer.
    Gone { consumer: &'a str },
    /// An abandoned attempt was taken back; its permit cools.
    Reclaimed { attempt: Attempt },
    /// Permits whose calls must be over were freed.
    Cooled { semaphore: &'a str, permits: i64 },
    /// The deadline of tasks that wait passed; they are cancelled.
    Expired { tasks: u64 },
    /// A counter was wrong and has been repaired.
    Drift { semaphore: &'a str, in_use: i64, counted: i64 },
    /// A permit no longer cools: the downstream said that its call is over.
    Probed { attempt: Attempt },
    /// The database's clock moved otherwise than time did.
    ClockStepped { by_micros: i64, cooling_held_for: Duration },
    /// A planned instant of a job has its task, or was passed by.
    Fired { job: &'a str, planned: Timestamp, task: i64, fate: Fate },
    /// Nobody fired these instants in time.
    Missed { job: &'a str, trigger: i64, first: Timestamp, last: Timestamp, count: u32 },
    /// A trigger cannot be fired.
    NotFired { job: &'a str, trigger: i64, error: &'a dyn std::error::Error, again_in: Duration },
    /// A next instant was wrong by the clock or the zone's rules that are in force now.
    Rescheduled { job: &'a str, trigger: i64, from: Option<Timestamp>, to: Option<Timestamp> },
    /// Old tasks were deleted.
    Pruned { tasks: u64, attempts: u64 },
    /// A state that cannot be.
    Impossible { what: &'a str },
    /// A loop has not turned for a whole lease.
    Stuck { what: &'a str },
}

impl Event<'_> {
    /// Tells everyone who listens.
    pub fn emit(&self) {
        use tracing::{debug, error, info, warn};
        match self {
            Self::Registered { consumer, slots } => info!(consumer, slots, "registered"),
            Self::Claimed { attempt, kind, semaphore } => {
                debug!(task = attempt.task, claim_no = attempt.claim_no, kind, semaphore, "claimed");
            }
            Self::Ended { attempt, settlement } => {
                let (task, claim_no) = (attempt.task, attempt.claim_no);
                let cooling = settlement.cooling.map(Why::as_str);
                match &settlement.error {
                    None => info!(task, claim_no, state = %settlement.state, cooling, "ended"),
                    Some(error) => {
                        warn!(task, claim_no, state = %settlement.state, cooling, error, "ended: {}", settlement.outcome);
                    }
                }
            }
            Self::Downstream { downstream, down: true } => {
                warn!(downstream, "down: its tasks wait until a probe call finds it up");
            }
            Self::Downstream { downstream, down: false } => info!(downstream, "up again"),
            Self::Lost { attempt } => {
                warn!(
                    task = attempt.task,
                    claim_no = attempt.claim_no,
                    "lost: this attempt is no longer ours"
                );
            }
            Self::LateAnswer { attempt, kept } => {
                info!(
                    task = attempt.task,
                    claim_no = attempt.claim_no,
                    kept,
                    "late answer of a lost attempt"
                );
            }
            Self::HandedBack { attempts } => warn!(attempts, "handed back claims whose answer never arrived"),
            Self::Fenced { consumer } => warn!(consumer, "declared gone: going on under a new id"),
            Self::Trouble { what, error, again_in } => {
                warn!(what, %error, again_in_ms = again_in.as_millis(), "trouble");
            }
            Self::Draining { running } => info!(running, "draining: nothing new is claimed"),
            Self::GivingUp { running } => warn!(running, "giving up running calls"),
            Self::Gone { consumer } => warn!(consumer, "consumer is gone: its lease passed"),
            Self::Reclaimed { attempt } => {
                warn!(task = attempt.task, claim_no = attempt.claim_no, "taken back; its permit cools");
            }
            Self::Expired { tasks } => info!(tasks, "cancelled: their deadline has passed"),
            Self::Cooled { semaphore, permits } => info!(semaphore, permits, "cooling over"),
            Self::Probed { attempt } => {
                info!(
                    task = attempt.task,
                    claim_no = attempt.claim_no,
                    "the downstream says that this call is done: its permit is free"
                );
            }
            Self::Drift { semaphore, in_use, counted } => {
                error!(
                    semaphore,
                    in_use, counted, "the counter was wrong (edited by hand?) and has been repaired"
                );
            }
            Self::ClockStepped { by_micros, cooling_held_for } => {
                warn!(
                    by_micros,
                    held_for_s = cooling_held_for.as_secs_f64(),
                    "the database's clock stepped: no cooling ends"
                );
            }
            Self::Fired { job, planned, task, fate: Fate::Fired } => info!(job, %planned, task, "fired"),
            Self::Fired { job, planned, task, fate } => {
                info!(job, %planned, task, why = fate.as_str(), "not fired");
            }
            Self::Missed { job, trigger, first, last, count } => {
                warn!(job, trigger, %first, %last, count, "misfired: too late");
            }
            Self::NotFired { job, trigger, error, again_in } => {
                error!(job, trigger, %error, again_in_s = again_in.as_secs(), "cannot be fired");
            }
            Self::Rescheduled { job, trigger, from, to } => {
                warn!(
                    job,
                    trigger,
                    ?from,
                    ?to,
                    "the next instant was wrong: the clock or a time zone changed"
                );
            }
            Self::Pruned { tasks, attempts } => info!(tasks, attempts, "pruned: past their age"),
            Self::Impossible { what } => error!(what, "impossible state"),
            Self::Stuck { what } => error!(what, "stuck for a whole lease"),
        }
    }
}
