//! Why is this task not running? A pure answer from what the tables show.

use jiff::Timestamp;
use serde::Serialize;

use super::out::brief;
use super::when;
use crate::model::{Pause, Scope, Semaphore, State, Task};
use crate::store::ConsumerRow;

/// What can be seen around a task.
pub(super) struct Sight<'a> {
    /// The database's clock.
    pub(super) now: Timestamp,
    /// Every semaphore.
    pub(super) semaphores: &'a [Semaphore],
    /// Processes that are not gone.
    pub(super) consumers: &'a [ConsumerRow],
    /// What is paused.
    pub(super) pauses: &'a [Pause],
}

/// One thing that holds a task up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    /// For scripts.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) text: String,
}

fn reason(reason: &'static str, text: impl Into<String>) -> Reason {
    Reason { reason, text: text.into() }
}

/// All reasons in one line; `None` for a task that runs or is finished.
pub(super) fn why(task: &Task, sight: &Sight<'_>) -> Option<String> {
    let reasons: Vec<_> = reasons(task, sight).into_iter().map(|reason| reason.text).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// All reasons that hold a waiting task up; none for one that runs or is finished.
pub(super) fn reasons(task: &Task, sight: &Sight<'_>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    match task.state {
        State::Running | State::Succeeded | State::Failed | State::Cancelled => return reasons,
        State::Blocked => return vec![reason("blocked", "waits for other tasks (see `after`)")],
        State::Scheduled if task.run_at > sight.now => {
            let due = when::relative(sight.now, task.run_at);
            reasons.push(match task.claim_no {
                0 => reason("not_due", format!("due {due}")),
                n => reason("retry_waits", format!("due again {due}, after attempt {n}")),
            });
        }
        // A consumer makes it pending; without one it stays as it is, and the reasons below say so.
        State::Scheduled | State::Pending => {}
    }
    let due = reasons.is_empty();
    if task.expires_at.is_some_and(|at| at <= sight.now) {
        reasons.push(reason("expired", "its deadline has passed: it will be cancelled"));
    }
    reasons.extend(sight.pauses.iter().filter_map(|pause| paused(task, pause, sight)));
    reasons.extend(consumers(task, sight));
    reasons.extend(semaphore(task, sight, due));
    if reasons.is_empty() {
        let next = "next in line: it starts as soon as a consumer that serves it has a free slot";
        reasons.push(reason("next", next));
    }
    reasons
}

/// Those who could claim it.
pub(super) fn claimers<'a>(task: &Task, sight: &Sight<'a>) -> impl Iterator<Item = &'a ConsumerRow> {
    alive(sight).filter(|row| row.serves(&task.kind, &task.semaphore))
}

fn alive<'a>(sight: &Sight<'a>) -> impl Iterator<Item = &'a ConsumerRow> + use<'a> {
    let now = sight.now;
    sight.consumers.iter().filter(move |row| row.state == "alive" && row.lease_until > now)
}

/// Whether this pause holds it up. Only those who serve a kind know its downstream: one that has no name of its own is
/// `default`'s.
fn paused(task: &Task, pause: &Pause, sight: &Sight<'_>) -> Option<Reason> {
    let named = sight.consumers.iter().any(|row| row.names(&task.kind));
    let downstream = if named { &*task.kind } else { "default" };
    let ours = match pause.scope {
        Scope::Fleet => true,
        Scope::Kind => pause.name == task.kind,
        Scope::Semaphore => pause.name == task.semaphore,
        Scope::Downstream => pause.name == downstream,
    };
    if !ours {
        return None;
    }
    let what = super::pause::words(pause.scope, &pause.name);
    let since = when::relative(sight.now, pause.since);
    let why = pause.why.as_deref().map(|why| format!(": {}", brief(why, 80))).unwrap_or_default();
    Some(match (pause.probe, pause.until) {
        (Some(probe), _) => {
            reason("down", format!("{what} was found down {since}, and task {} probes it{why}", probe.task))
        }
        (None, Some(until)) => {
            let next = when::relative(sight.now, until);
            reason("down", format!("{what} was found down {since}, the next probe is due {next}{why}"))
        }
        (None, None) => reason("paused", format!("{what} was paused by {} {since}{why}", pause.who)),
    })
}

/// What is wrong with those who could claim it.
fn consumers(task: &Task, sight: &Sight<'_>) -> Option<Reason> {
    if claimers(task, sight).next().is_some() {
        return None;
    }
    if alive(sight).next().is_none() {
        let draining = sight.consumers.iter().filter(|row| row.state == "draining").count();
        let text = match draining {
            0 => "no consumer is alive; start one with `permitq run`".to_owned(),
            n => format!("no consumer is alive, {n} draining; start one with `permitq run`"),
        };
        return Some(reason("no_consumer", text));
    }
    let other = sight
        .semaphores
        .iter()
        .find(|semaphore| alive(sight).any(|row| row.serves(&task.kind, &semaphore.name)));
    let other = other.map(|semaphore| format!(" (under semaphore {} one does)", semaphore.name));
    let text = format!(
        "no consumer that is alive serves kind {} with semaphore {}{}",
        task.kind,
        task.semaphore,
        other.unwrap_or_default()
    );
    Some(reason("not_served", text))
}

/// What is wrong with its permits. Whether they are all taken matters only once it is due.
fn semaphore(task: &Task, sight: &Sight<'_>, due: bool) -> Option<Reason> {
    let name = &task.semaphore;
    let Some(found) = sight.semaphores.iter().find(|semaphore| semaphore.name == *name) else {
        let text = format!("semaphore {name} does not exist; `permitq permits add {name} N` adds it");
        return Some(reason("no_semaphore", text));
    };
    let Semaphore { max_permits: max, in_use, held, cooling, waiting, .. } = found;
    if *max == 0 {
        return Some(reason("stopped", format!("max_permits of semaphore {name} is 0")));
    }
    let full = due && found.free() == 0;
    full.then(|| {
        let waiting = if *waiting > 1 { format!(", {waiting} tasks wait") } else { String::new() };
        let text = format!(
            "semaphore {name} is full: {in_use} of {max} in use ({held} held, {cooling} cooling){waiting}"
        );
        reason("full", text)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn now() -> Timestamp {
        "2026-12-01T09:00:00Z".parse().unwrap()
    }

    fn task(state: State) -> Task {
        Task {
            id: 1,
            kind: "report".to_owned(),
            semaphore: "default".to_owned(),
            biz_key: None,
            payload: None,
            priority: 0,
            state,
            run_at: now(),
            claim_no: 0,
            attempts: 0,
            max_attempts: None,
            on_abandon: None,
            timeout: None,
            consumer: None,
            until: None,
            created_at: now(),
            started_at: None,
            finished_at: None,
            result: None,
            error: None,
            source: "cli".to_owned(),
            aged: 0,
            expires_at: None,
        }
    }

    fn semaphore(name: &str, max_permits: i64, in_use: i64) -> Semaphore {
        let (name, held, cooling) = (name.to_owned(), in_use.min(3), (in_use - 3).max(0));
        Semaphore { name, max_permits, in_use, held, cooling, waiting: 1 }
    }

    fn consumer(serves: &str, state: &str, lease: i64) -> ConsumerRow {
        ConsumerRow {
            id: "c1".to_owned(),
            name: "c".to_owned(),
            host: "h".to_owned(),
            pid: 1,
            version: "1".to_owned(),
            slots: 4,
            serves: serves.to_owned(),
            state: state.to_owned(),
            started_at: now(),
            lease_until: now() + jiff::SignedDuration::from_secs(lease),
        }
    }

    fn note(task: &Task, semaphores: &[Semaphore], consumers: &[ConsumerRow]) -> String {
        why(task, &Sight { now: now(), semaphores, consumers, pauses: &[] }).unwrap_or_default()
    }

    const ALL: &str = r#"{"*": "default"}"#;

    #[test]
    fn what_runs_or_is_finished_needs_no_reason() {
        for state in [State::Running, State::Succeeded, State::Failed, State::Cancelled] {
            assert_eq!(note(&task(state), &[], &[]), "");
        }
        assert_eq!(note(&task(State::Blocked), &[], &[]), "waits for other tasks (see `after`)");
    }

    #[test]
    fn a_task_that_is_not_due_says_when_it_is() {
        let mut later = task(State::Scheduled);
        later.run_at = now() + Duration::from_mins(3);
        let busy = [semaphore("default", 4, 4)];
        assert_eq!(note(&later, &busy, &[consumer(ALL, "alive", 60)]), "due in 3 m");
        assert_eq!(
            note(&later, &busy, &[]),
            "due in 3 m; no consumer is alive; start one with `permitq run`"
        );
    }

    #[test]
    fn a_retry_says_after_which_attempt_it_waits() {
        let later = Task { claim_no: 2, run_at: now() + Duration::from_mins(3), ..task(State::Scheduled) };
        let alive = [consumer(ALL, "alive", 60)];
        let sight =
            Sight { now: now(), semaphores: &[semaphore("default", 4, 0)], consumers: &alive, pauses: &[] };
        assert_eq!(reasons(&later, &sight), [reason("retry_waits", "due again in 3 m, after attempt 2")]);
    }

    #[test]
    fn nobody_serves_it() {
        let free = [semaphore("default", 4, 0), semaphore("other", 4, 0)];
        let due = task(State::Pending);
        assert_eq!(note(&due, &free, &[]), "no consumer is alive; start one with `permitq run`");
        for nobody in [consumer(ALL, "alive", -1), consumer(ALL, "gone", 60)] {
            assert!(note(&due, &free, &[nobody]).contains("no consumer is alive"));
        }
        assert!(note(&due, &free, &[consumer(ALL, "draining", 60)]).contains("1 draining"));
        assert_eq!(
            note(&due, &free, &[consumer(r#"{"mail": "default"}"#, "alive", 60)]),
            "no consumer that is alive serves kind report with semaphore default"
        );
        assert_eq!(
            note(&due, &free, &[consumer(r#"{"report": "other"}"#, "alive", 60)]),
            "no consumer that is alive serves kind report with semaphore default (under semaphore other one does)"
        );
    }

    #[test]
    fn its_semaphore_gives_no_permit() {
        let due = task(State::Pending);
        let alive = [consumer(ALL, "alive", 60)];
        assert_eq!(
            note(&due, &[semaphore("default", 4, 4)], &alive),
            "semaphore default is full: 4 of 4 in use (3 held, 1 cooling)"
        );
        assert_eq!(
            note(&due, &[semaphore("default", 0, 0)], &alive),
            "max_permits of semaphore default is 0"
        );
        assert!(note(&due, &[semaphore("other", 4, 0)], &alive).contains("default does not exist"));
    }

    #[test]
    fn all_reasons_are_told() {
        let text = note(&task(State::Pending), &[semaphore("default", 4, 5)], &[]);
        assert!(text.contains("no consumer is alive") && text.contains("5 of 4 in use"), "{text}");
        let overdue = task(State::Scheduled);
        assert!(note(&overdue, &[semaphore("default", 4, 0)], &[]).contains("no consumer is alive"));
    }

    #[test]
    fn nothing_is_in_the_way() {
        let text = note(&task(State::Pending), &[semaphore("default", 4, 1)], &[consumer(ALL, "alive", 60)]);
        assert!(text.contains("next in line"), "{text}");
    }
}
