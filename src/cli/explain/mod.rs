//! `permitq task explain ID`: why does it not run, who runs it, or how did it come to its end? All that it reads is bounded.

mod estimate;
mod timeline;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::fail::Failure;
use super::out::{Out, clean, list, section, table};
use super::shape::{HolderShape, TaskShape};
use super::why::{Reason, Sight, claimers, reasons};
use super::{task, tasks, when};
use crate::model::{Holder, PermitState, Semaphore, State, Task};
use crate::store::{Action, AttemptLog, Store};

use estimate::Estimate;
use timeline::{Lane, draw};

/// Others are counted so far.
const OTHERS: i64 = 1000;
/// An estimate is made from so many attempts.
const RECENT: i64 = 200;
/// So many holders of a full semaphore are told.
const HOLDERS: usize = 10;

/// What scripts rely on: durations are seconds.
#[derive(Serialize)]
struct Explanation<'a> {
    #[serde(flatten)]
    task: TaskShape<'a>,
    /// The database's clock.
    now: Timestamp,
    /// One line.
    summary: String,
    asked: Asked,
    /// Of a waiting task: all that holds it up.
    reasons: Vec<Reason>,
    /// Of a due task: those that are claimed before it.
    ahead: Option<Ahead>,
    /// An estimate of a waiting task's start.
    expected_start: Option<Timestamp>,
    /// An estimate of a running task's end.
    expected_end: Option<Timestamp>,
    /// What the estimates are made from.
    estimate: Option<Estimate>,
    /// Who runs it; permits that cool for it; where it waits for a full semaphore, who holds that.
    holders: Vec<Holds<'a>>,
    attempts: Vec<Attempt<'a>>,
    actions: &'a [Action],
}

/// Who asked for it, and why then.
#[derive(Clone, Serialize)]
struct Asked {
    source: String,
    job: Option<String>,
    /// The trigger and when it is due; none of a run by hand, or of a trigger that is gone.
    trigger: Option<i64>,
    when: Option<String>,
    planned_at: Option<Timestamp>,
    fired_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Serialize)]
struct Ahead {
    tasks: i64,
    /// There are more: counting stopped.
    more: bool,
}

impl Ahead {
    fn reason(self) -> Option<Reason> {
        let text = match self {
            Self { more: true, tasks } => format!("behind more than {tasks} others"),
            Self { tasks: 0, .. } => return None,
            Self { tasks: 1, .. } => "behind one other".to_owned(),
            Self { tasks, .. } => format!("behind {tasks} others"),
        };
        Some(Reason { reason: "behind", text })
    }
}

#[derive(Serialize)]
struct Holds<'a> {
    #[serde(skip)]
    holder: &'a Holder,
    #[serde(flatten)]
    shape: HolderShape<'a>,
    age: f64,
    /// An estimate.
    expected_end: Option<Timestamp>,
}

#[derive(Serialize)]
struct Attempt<'a> {
    #[serde(flatten)]
    log: &'a AttemptLog,
    /// From when it could have started, as far as that is known, to its claim.
    waited: f64,
    ran: f64,
    /// How long its permit cooled; so far, where `permit_released_at` is null.
    cooled: f64,
}

/// What is read.
struct Seen {
    task: Task,
    now: Timestamp,
    semaphore: Option<Semaphore>,
    /// Permits of its semaphore.
    holders: Vec<Holder>,
    /// Calls that those who could claim it can make at once.
    slots: i64,
    reasons: Vec<Reason>,
    ahead: Option<Ahead>,
    estimate: Option<Estimate>,
    attempts: Vec<AttemptLog>,
    actions: Vec<Action>,
    asked: Asked,
}

pub(super) async fn run(id: i64, store: &mut Store, out: &Out) -> Result<(), Failure> {
    let Some(seen) = see(id, store).await? else { return Err(task::missing(id, store)) };
    let explanation = seen.explain();
    out.answer(&explanation, || human(&seen, &explanation))?;
    Ok(())
}

async fn see(id: i64, store: &mut Store) -> Result<Option<Seen>, Failure> {
    let Some(task) = store.task(id).await? else { return Ok(None) };
    let semaphores = store.semaphores().await?;
    let consumers = store.consumers().await?;
    let mut holders = store.holders().await?;
    holders.retain(|holder| holder.semaphore == task.semaphore);
    let pauses = store.pauses().await?;
    let now = when::now(store).await?;
    let sight = Sight { now, semaphores: &semaphores, consumers: &consumers, pauses: &pauses };
    let slots = claimers(&task, &sight).map(|row| row.slots).sum();
    let mut reasons = reasons(&task, &sight);
    let ahead = match task.state {
        State::Pending => Some(ahead(&task, store).await?),
        _ => None,
    };
    if let Some(behind) = ahead.and_then(Ahead::reason) {
        reasons.retain(|reason| reason.reason != "next");
        reasons.push(behind);
    }
    let estimate = match task.state {
        state if state.is_final() => None,
        _ => Estimate::of(&store.recent_runs(&task.semaphore, RECENT).await?, &task.kind),
    };
    Ok(Some(Seen {
        now,
        semaphore: semaphores.into_iter().find(|semaphore| semaphore.name == task.semaphore),
        holders,
        slots,
        reasons,
        ahead,
        estimate,
        attempts: store.attempts(id).await?,
        actions: store.actions(id).await?,
        asked: asked(&task, store).await?,
        task,
    }))
}

/// Of all kinds that have due tasks.
async fn ahead(task: &Task, store: &mut Store) -> Result<Ahead, Failure> {
    let look = store.look(std::slice::from_ref(&task.semaphore)).await?;
    let mut tasks = 0;
    for kind in look.semaphores.iter().flat_map(|semaphore| &semaphore.kinds) {
        if tasks > OTHERS {
            break;
        }
        tasks += store.ahead(task, kind, OTHERS + 1).await?;
    }
    Ok(Ahead { tasks: tasks.min(OTHERS), more: tasks > OTHERS })
}

async fn asked(task: &Task, store: &mut Store) -> Result<Asked, Failure> {
    let source = task.source.clone();
    let none = Asked { source, job: None, trigger: None, when: None, planned_at: None, fired_at: None };
    let Some(fired) = store.fired_by(task.id).await? else { return Ok(none) };
    let trigger = match fired.trigger {
        Some(id) => store.triggers(Some(&fired.job)).await?.into_iter().find(|trigger| trigger.id == id),
        None => None,
    };
    let when = trigger.and_then(|trigger| trigger.when.ok()).map(|when| when.to_string());
    Ok(Asked {
        job: Some(fired.job),
        trigger: fired.trigger,
        when,
        planned_at: Some(fired.planned_at),
        fired_at: Some(fired.at),
        ..none
    })
}

impl Seen {
    fn explain(&self) -> Explanation<'_> {
        let running = self.task.state == State::Running;
        let expected_end = match (self.task.started_at, &self.estimate) {
            (Some(started), Some(estimate)) if running => estimate.end(started, self.now),
            _ => None,
        };
        Explanation {
            task: TaskShape::from(&self.task),
            now: self.now,
            summary: self.summary(),
            asked: self.asked.clone(),
            reasons: self.reasons.clone(),
            ahead: self.ahead,
            expected_start: self.expected_start(),
            expected_end,
            estimate: self.estimate,
            holders: self.told_holders(),
            attempts: self.attempt_shapes(),
            actions: &self.actions,
        }
    }

    /// None where nobody can claim it, where too many are ahead, or where there is nothing to go by.
    fn expected_start(&self) -> Option<Timestamp> {
        let waiting = matches!(self.task.state, State::Scheduled | State::Pending);
        let (estimate, semaphore) = (self.estimate.filter(|_| waiting)?, self.semaphore.as_ref()?);
        let permits = usize::try_from(semaphore.max_permits.min(self.slots)).ok()?;
        let ahead = match self.ahead {
            Some(Ahead { more: true, .. }) => return None,
            Some(ahead) => ahead.tasks,
            // By the time it is due, those that wait now are ahead.
            None => semaphore.waiting,
        };
        let holders: Vec<_> = self.holders.iter().collect();
        let start = estimate.start(self.now, usize::try_from(ahead).ok()?, permits, &holders)?;
        Some(start.max(self.task.run_at))
    }

    fn told_holders(&self) -> Vec<Holds<'_>> {
        let full = self.reasons.iter().any(|reason| reason.reason == "full");
        let told = |holder: &&Holder| full || holder.task == Some(self.task.id);
        let expected_end = |holder: &Holder| match holder.state {
            PermitState::Cooling => Some(holder.until),
            PermitState::Held => {
                let seconds = self.estimate?.mean_hold;
                let end = holder.since.checked_add(Duration::try_from_secs_f64(seconds).ok()?).ok()?;
                Some(end.max(self.now).min(holder.until.max(self.now)))
            }
        };
        self.holders
            .iter()
            .filter(told)
            .take(HOLDERS)
            .map(|holder| Holds {
                holder,
                shape: HolderShape::from(holder),
                age: seconds(holder.since, self.now),
                expected_end: expected_end(holder),
            })
            .collect()
    }

    /// When each attempt could have started: when the one before was over, or the task was enqueued, or, where that is
    /// still known, when it was due.
    fn ready(&self, n: usize) -> Timestamp {
        let before = n.checked_sub(1).and_then(|before| self.attempts.get(before));
        let over = before.map_or(self.task.created_at, |before| before.ended_at);
        let claimed = match self.attempts.get(n) {
            Some(attempt) => attempt.claimed_at,
            None => self.task.started_at.filter(|_| self.task.state == State::Running).unwrap_or(self.now),
        };
        let last = n + 1 >= self.attempts.len();
        if last && self.task.run_at > over && self.task.run_at <= claimed { self.task.run_at } else { over }
    }

    fn attempt_shapes(&self) -> Vec<Attempt<'_>> {
        let shape = |(n, log)| Attempt {
            log,
            waited: seconds(self.ready(n), log.claimed_at),
            ran: seconds(log.claimed_at, log.ended_at),
            cooled: seconds(log.ended_at, log.permit_released_at.unwrap_or(self.now)),
        };
        self.attempts.iter().enumerate().map(shape).collect()
    }

    fn lanes(&self) -> Vec<Lane> {
        let mut lanes: Vec<_> = self
            .attempts
            .iter()
            .enumerate()
            .map(|(n, log)| Lane {
                name: format!("attempt {}", log.claim_no),
                waits_from: self.ready(n),
                claimed: Some(log.claimed_at),
                ended: Some(log.ended_at),
                freed: log.permit_released_at,
            })
            .collect();
        if !self.task.state.is_final() {
            let running = self.task.state == State::Running;
            let claimed = self.task.started_at.filter(|_| running);
            let name = if running { format!("attempt {}", self.task.claim_no) } else { "now".to_owned() };
            let waits_from = self.ready(self.attempts.len()).min(self.now);
            lanes.push(Lane { name, waits_from, claimed, ended: None, freed: None });
        }
        lanes
    }

    fn summary(&self) -> String {
        let Task { id, state, .. } = self.task;
        match state {
            State::Running => {
                let consumer = self.task.consumer.as_deref().unwrap_or("nobody");
                let since = self.task.started_at.map(|at| when::short(distance(at, self.now)));
                format!("task {id} is running: by {consumer} for {}", since.unwrap_or_default())
            }
            State::Succeeded | State::Failed | State::Cancelled => {
                let took = self.task.finished_at.map(|at| when::short(distance(self.task.created_at, at)));
                let attempts = match self.attempts.len() {
                    0 => "without an attempt".to_owned(),
                    1 => "after one attempt".to_owned(),
                    n => format!("after {n} attempts"),
                };
                format!("task {id} {state} {attempts}, {} after it was enqueued", took.unwrap_or_default())
            }
            State::Blocked | State::Scheduled | State::Pending => {
                let reasons: Vec<_> = self.reasons.iter().map(|reason| &*reason.text).collect();
                format!("task {id} is {state}: {}", reasons.join("; "))
            }
        }
    }
}

fn human(seen: &Seen, explanation: &Explanation<'_>) -> String {
    let mut parts = vec![clean(&explanation.summary), list(&facts(seen, explanation))];
    if !explanation.holders.is_empty() {
        parts.push(section("permits", &holders(seen, explanation)));
    }
    if !explanation.attempts.is_empty() {
        parts.push(section("attempts", &attempts(explanation)));
    }
    if !seen.actions.is_empty() {
        let rows: Vec<_> = seen
            .actions
            .iter()
            .map(|action| {
                let detail = action.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
                [when::utc(action.at), format!("{} by {}{detail}", action.what, action.who)]
            })
            .collect();
        parts.push(section("people", &list(&rows)));
    }
    parts.extend(draw(&seen.lanes(), seen.now).map(|drawn| section("timeline", &drawn)));
    parts.join("\n\n")
}

fn facts(seen: &Seen, explanation: &Explanation<'_>) -> Vec<[String; 2]> {
    let Seen { task, now, asked, .. } = seen;
    let mut rows = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        rows.extend(value.map(|value| [name.to_owned(), value]));
    };
    add("kind", Some(task.kind.clone()));
    add("key", task.biz_key.clone());
    add("asked for", Some(format!("{} by {}", when::both(*now, task.created_at), asked.source)));
    add(
        "planned",
        asked.planned_at.map(|planned| {
            let trigger = match (asked.trigger, &asked.when) {
                (Some(id), Some(when)) => format!(" by trigger {id}: {when}"),
                (Some(id), None) => format!(" by trigger {id}, which is gone"),
                (None, _) => " by hand".to_owned(),
            };
            let late = asked.fired_at.map(|at| when::short(distance(planned, at))).unwrap_or_default();
            format!("{}{trigger}; fired {late} later", when::utc(planned))
        }),
    );
    add("attempts", Some(tasks::attempts(task)));
    add("due", (!task.state.is_final()).then(|| when::both(*now, task.run_at)));
    let guess =
        |at: Timestamp| format!("{}, an estimate{}", when::both(*now, at), from(explanation.estimate));
    add("starts", explanation.expected_start.map(guess));
    if task.state == State::Running {
        add("ends", explanation.expected_end.map(guess));
        add("at most", task.until.map(|at| format!("until {}", when::both(*now, at))));
    }
    add("finished", task.finished_at.map(|at| when::both(*now, at)));
    add("result", task.result.as_ref().map(|result| super::out::brief(result, 200)));
    add("error", task.error.clone());
    rows
}

/// What an estimate is made from.
fn from(estimate: Option<Estimate>) -> String {
    let span = |seconds: f64| when::short(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    estimate.map_or_else(String::new, |estimate| {
        format!(
            " from the last {} attempts, which held a permit for {} on average",
            estimate.attempts,
            span(estimate.mean_hold)
        )
    })
}

fn holders(seen: &Seen, explanation: &Explanation<'_>) -> String {
    let rows = explanation.holders.iter().map(|holds| {
        let holder = holds.holder;
        let why = holder.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let host =
            holder.host.as_ref().map(|host| format!("{host}, process {}", holder.pid.unwrap_or_default()));
        [
            holder.task.map_or_else(|| "unknown".to_owned(), |task| task.to_string()),
            format!("{}{why}", holder.state.as_str()),
            when::short(distance(holder.since, seen.now)),
            holds.expected_end.map(|at| when::relative(seen.now, at)).unwrap_or_default(),
            when::relative(seen.now, holder.until),
            holder.consumer.clone().unwrap_or_default(),
            host.unwrap_or_default(),
            holder.lease_until.map(|at| when::relative(seen.now, at)).unwrap_or_default(),
        ]
    });
    let header = ["task", "state", "for", "expected end", "at most", "consumer", "where", "lease"];
    let text = table(header, rows);
    let more = seen.holders.len().saturating_sub(HOLDERS);
    if more > 0 && explanation.holders.len() == HOLDERS {
        return format!("{text}\nand {more} more; `permitq permits` shows them");
    }
    text
}

fn attempts(explanation: &Explanation<'_>) -> String {
    let rows = explanation.attempts.iter().map(|attempt| {
        let log = attempt.log;
        let span = |seconds: f64| when::short(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let cooled = match log.permit_released_at {
            None => format!("{}, and cools", span(attempt.cooled)),
            Some(_) if attempt.cooled > 0.0 => span(attempt.cooled),
            Some(_) => String::new(),
        };
        let status = log.status.map(|status| format!("HTTP {status}"));
        let by = (log.ended_by != log.consumer).then(|| format!("ended by {}", log.ended_by));
        let called = log.called_at.is_none().then(|| "no call began".to_owned());
        let late = log.late_at.map(|at| {
            let said = log.late_answer.as_deref().unwrap_or_default();
            format!("late answer at {}, evidence only: {said}", when::utc(at))
        });
        let said = [status, by, called, log.error.clone(), late].into_iter().flatten();
        [
            log.claim_no.to_string(),
            when::utc(log.claimed_at),
            log.consumer.clone(),
            span(attempt.waited),
            span(attempt.ran),
            cooled,
            log.outcome.clone(),
            said.collect::<Vec<_>>().join("; "),
        ]
    });
    table(["attempt", "claimed", "consumer", "waited", "ran", "cooled", "outcome", ""], rows)
}

fn distance(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    distance(from, to).as_secs_f64()
}
