//! What the model knows, and what it foretells of each step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use permitq::model::{Attempt, Claim, Ended, NewTask, OnAbandon, PermitState, RunAt, State};
use permitq::store::{Accepted, Cancelled, Filter, Left, Recorded, Repair, Retried, Store};

use super::rules::{After, abandoned, is_near};
use super::{Edit, FLEET, Op};
use crate::support::{Consumer, Db, LEASE, ended, late};

/// A task as the model has it. Instants are read from the database after each step, in microseconds.
#[derive(Clone, Debug)]
struct Task {
    state: State,
    priority: i32,
    run_at: i64,
    claim_no: i64,
    attempts: u32,
    max_attempts: u32,
    on_abandon: OnAbandon,
    consumer: Option<String>,
    until: i64,
    /// It may not be called again before this instant.
    waits_for: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    Alive,
    Draining,
    Gone,
}

/// One line of the attempt log.
#[derive(Clone, Debug)]
struct Log {
    consumer: String,
    ended_by: String,
    late: bool,
}

/// A process, with what it believes to run.
struct Process {
    consumer: Consumer,
    claims: Vec<Claim>,
}

pub(super) struct World<'d> {
    db: &'d Db,
    people: Store,
    fleet: Vec<Process>,
    starts: usize,
    max: i64,
    in_use: i64,
    tasks: BTreeMap<i64, Task>,
    keys: BTreeMap<u8, i64>,
    /// Whose permits cool, and until when.
    coolings: BTreeMap<(i64, i64), (String, i64)>,
    /// The same, where nobody knows whose.
    drift: Vec<i64>,
    /// Everybody who has a row, and the lease.
    consumers: BTreeMap<String, (Life, i64)>,
    log: BTreeMap<Attempt, Log>,
    said: Vec<Ended>,
}

/// What a task gets that does not say.
const MAX_ATTEMPTS: u32 = 3;
const HOLD: Duration = Duration::from_mins(9);

impl<'d> World<'d> {
    pub(super) async fn new(db: &'d Db) -> Self {
        for table in ["task", "cooling", "attempt", "consumer", "action"] {
            db.sql(&format!("DELETE FROM permitq_{table}")).await;
        }
        db.sql("UPDATE permitq_semaphore SET in_use = 0, max_permits = 4").await;
        let mut world = Self {
            db,
            people: db.store(),
            fleet: Vec::new(),
            starts: 0,
            max: 4,
            in_use: 0,
            tasks: BTreeMap::new(),
            keys: BTreeMap::new(),
            coolings: BTreeMap::new(),
            drift: Vec::new(),
            consumers: BTreeMap::new(),
            log: BTreeMap::new(),
            said: Vec::new(),
        };
        for _ in 0..FLEET {
            let process = world.start().await;
            world.fleet.push(process);
        }
        world.compare().await;
        world
    }

    /// A step, and a look at everything.
    pub(super) async fn step(&mut self, op: Op) {
        self.play(op).await;
        self.compare().await;
    }

    async fn start(&mut self) -> Process {
        self.starts += 1;
        let id = format!("c{}", self.starts);
        self.consumers.insert(id.clone(), (Life::Alive, 0));
        Process { consumer: self.db.consumer(&id).await, claims: Vec::new() }
    }

    fn life(&self, id: &str) -> Option<Life> {
        self.consumers.get(id).map(|(life, _)| *life)
    }

    fn pick(&self, which: usize, of: impl Fn(&Task) -> bool) -> Option<i64> {
        let ids: Vec<_> = self.tasks.iter().filter(|(_, task)| of(task)).map(|(id, _)| *id).collect();
        ids.get(which % ids.len().max(1)).copied()
    }

    fn running(&self) -> i64 {
        i64::try_from(self.tasks.values().filter(|task| task.state == State::Running).count()).unwrap()
    }

    fn cooling(&self) -> i64 {
        i64::try_from(self.coolings.len() + self.drift.len()).unwrap()
    }

    async fn now(&mut self) -> i64 {
        self.people.clock().await.unwrap()
    }

    fn free(&mut self, permits: i64) {
        self.in_use = (self.in_use - permits).max(0);
    }

    /// A running attempt ends.
    fn end(&mut self, id: i64, by: &str, after: After) {
        let task = self.tasks.get_mut(&id).unwrap();
        let consumer = task.consumer.take().unwrap();
        let attempt = Attempt { task: id, claim_no: task.claim_no };
        if after.cools {
            self.coolings.insert((id, task.claim_no), (consumer.clone(), task.until));
        }
        (task.state, task.attempts) = (after.state, after.attempts);
        task.waits_for = after.waits.then_some(task.until);
        let known = self.log.insert(attempt, Log { consumer, ended_by: by.to_owned(), late: false });
        assert!(known.is_none(), "{attempt:?} ended twice");
    }

    #[expect(clippy::too_many_lines, reason = "one arm per step")]
    async fn play(&mut self, op: Op) {
        let now = self.now().await;
        match op {
            Op::Enqueue { tasks, priority, on_abandon, max_attempts, later } => {
                let run_at = if later { RunAt::In(Duration::from_mins(1)) } else { RunAt::Now };
                let task = NewTask {
                    priority,
                    run_at,
                    on_abandon: Some(on_abandon),
                    max_attempts: Some(max_attempts),
                    ..NewTask::new("call", "{}")
                };
                let state = if later { State::Scheduled } else { State::Pending };
                for done in self.people.enqueue(&vec![task; tasks]).await.unwrap() {
                    assert!(done.created);
                    self.come(done.id, state, priority, on_abandon, max_attempts);
                }
            }
            Op::EnqueueKeyed { key } => {
                let task = NewTask::new("call", "{}").key(format!("key {key}"));
                let done = self.people.enqueue(&[task]).await.unwrap()[0];
                let known = self.keys.insert(key, done.id);
                assert_eq!((done.id, done.created), (known.unwrap_or(done.id), known.is_none()));
                if done.created {
                    self.come(done.id, State::Pending, 0, OnAbandon::Retry, MAX_ATTEMPTS);
                }
            }
            Op::Exchange { who, ends, how, want } => {
                let ends = ends.min(self.fleet[who].claims.len());
                let done: Vec<Ended> =
                    self.fleet[who].claims.drain(..ends).map(|claim| ended(claim, &how.outcome())).collect();
                let id = self.fleet[who].consumer.id.clone();
                let mut freed = 0;
                let mut expected = Vec::new();
                for Ended { attempt, .. } in &done {
                    if !self.is_owner(&id, *attempt) {
                        expected.push(Recorded::Lost);
                        continue;
                    }
                    let task = &self.tasks[&attempt.task];
                    let after = how.after(task.attempts, task.max_attempts, task.on_abandon);
                    freed += i64::from(!after.cools);
                    self.end(attempt.task, &id, after);
                    expected.push(Recorded::Done);
                }
                let claimed = self.claim(&id, want, freed);
                let got = self.fleet[who].consumer.exchange(&done, want).await;
                assert_eq!(got.recorded, expected);
                let attempts: Vec<_> = got.claims.iter().map(|claim| claim.attempt).collect();
                assert_eq!(attempts, claimed);
                self.fleet[who].claims.extend(got.claims);
                self.said.extend(done);
            }
            Op::Repeat { who, which } => {
                let Some(said) = self.said.get(which % self.said.len().max(1)).cloned() else { return };
                let by = self.log.get(&said.attempt).map(|log| log.ended_by.as_str());
                let ours = by == Some(self.fleet[who].consumer.id.as_str());
                let expected = if ours { Recorded::Done } else { Recorded::Lost };
                // Nobody ends what somebody runs, unless it is their own.
                if !self.is_owner(&self.fleet[who].consumer.id, said.attempt) {
                    assert_eq!(self.fleet[who].consumer.finish(&[said]).await, [expected]);
                }
            }
            Op::Late { which, clear } => {
                let logged = self.log.iter().map(|(attempt, log)| (*attempt, log.consumer.clone()));
                let running = self.tasks.iter().filter_map(|(id, task)| {
                    Some((Attempt { task: *id, claim_no: task.claim_no }, task.consumer.clone()?))
                });
                let all: Vec<_> = logged.chain(running).collect();
                let Some((attempt, consumer)) = all.get(which % all.len().max(1)) else { return };
                let expected =
                    self.log.get_mut(attempt).is_some_and(|log| !std::mem::replace(&mut log.late, true));
                let key = (attempt.task, attempt.claim_no);
                if clear && self.coolings.remove(&key).is_some() {
                    self.free(1);
                }
                assert!(!self.people.late("nobody", &late(*attempt, "not mine", true)).await.unwrap());
                let kept = self.people.late(consumer, &late(*attempt, "late", clear)).await.unwrap();
                assert_eq!(kept, expected);
            }
            Op::Beat { who } => {
                let id = self.fleet[who].consumer.id.clone();
                let held = self.fleet[who].consumer.store.beat(&id, LEASE).await.unwrap();
                let held = held.map(|held| held.into_iter().collect::<BTreeSet<_>>());
                let runs = self.tasks.iter().filter(|(_, task)| task.consumer.as_ref() == Some(&id));
                let runs = runs.map(|(id, task)| Attempt { task: *id, claim_no: task.claim_no }).collect();
                let known = matches!(self.life(&id), Some(Life::Alive | Life::Draining));
                assert_eq!(held, known.then_some(runs));
                if !known {
                    self.fleet[who] = self.start().await;
                }
            }
            Op::Crash { who } => self.fleet[who] = self.start().await,
            Op::Leave { who, gone } => {
                let id = self.fleet[who].consumer.id.clone();
                self.db.leave(&id, if gone { Left::Gone } else { Left::Draining }).await;
                if let Some((life, _)) = self.consumers.get_mut(&id)
                    && *life != Life::Gone
                {
                    *life = if gone { Life::Gone } else { Life::Draining };
                }
            }
            Op::Pass { span } => {
                for (table, column, rows) in [
                    ("permitq_task", "run_at", "state = 'scheduled'"),
                    ("permitq_task", "until", "state = 'running'"),
                    ("permitq_cooling", "until", "1 = 1"),
                    ("permitq_consumer", "lease_until", "1 = 1"),
                ] {
                    self.db.age(table, column, span, rows).await;
                }
            }
            Op::Fence => {
                if self.consumers.values().any(|(_, lease)| is_near(*lease, now)) {
                    return;
                }
                let over: Vec<_> = self
                    .consumers
                    .iter_mut()
                    .filter(|(_, (life, lease))| *life != Life::Gone && *lease < now)
                    .map(|(id, (life, _))| {
                        *life = Life::Gone;
                        id.clone()
                    })
                    .collect();
                let mut expired = self.people.expired().await.unwrap();
                expired.sort_by(|a, b| a.consumer.cmp(&b.consumer));
                assert_eq!(expired.iter().map(|one| one.consumer.clone()).collect::<Vec<_>>(), over);
                for one in expired {
                    assert!(self.people.fence(&one).await.unwrap());
                    assert!(!self.people.fence(&one).await.unwrap());
                }
            }
            Op::Reclaim { limit } => {
                let lease = i64::try_from(LEASE.as_micros()).unwrap();
                let running = self.tasks.iter().filter(|(_, task)| task.state == State::Running);
                if running.clone().any(|(_, task)| is_near(task.until + lease, now)) {
                    return;
                }
                let lost = running.filter(|(_, task)| {
                    let owner = self.life(task.consumer.as_ref().unwrap());
                    matches!(owner, None | Some(Life::Gone)) || task.until + lease < now
                });
                let lost: Vec<_> = lost
                    .map(|(id, task)| (*id, task.clone()))
                    .take(usize::try_from(limit).unwrap())
                    .collect();
                for (id, task) in &lost {
                    self.end(
                        *id,
                        "reclaimer r",
                        abandoned(task.attempts, task.max_attempts, task.on_abandon),
                    );
                }
                let taken = self.people.reclaim("r", LEASE, 0, limit).await.unwrap();
                let expected: Vec<_> = lost.into_iter().map(|(id, _)| id).collect();
                assert_eq!(taken.into_iter().map(|attempt| attempt.task).collect::<Vec<_>>(), expected);
            }
            Op::EndCoolings { limit } => self.end_coolings(limit, now).await,
            Op::Promote { limit } => {
                let mut due: Vec<_> =
                    self.tasks.iter().filter(|(_, task)| task.state == State::Scheduled).collect();
                if due.iter().any(|(_, task)| is_near(task.run_at, now)) {
                    return;
                }
                due.retain(|(_, task)| task.run_at <= now);
                due.sort_by_key(|(id, task)| (task.run_at, **id));
                let due: Vec<_> =
                    due.into_iter().map(|(id, _)| *id).take(usize::try_from(limit).unwrap()).collect();
                assert_eq!(self.people.promote(limit).await.unwrap(), due.len() as u64);
                for id in due {
                    self.tasks.get_mut(&id).unwrap().state = State::Pending;
                }
            }
            Op::Tune { max, by_hand } => {
                self.max = max;
                if by_hand {
                    self.db.sql(&format!("UPDATE permitq_semaphore SET max_permits = {max}")).await;
                } else {
                    self.db.set_max(max).await;
                }
            }
            Op::Cancel { which } => {
                let Some(id) = self.pick(which, |_| true) else { return };
                let task = self.tasks[&id].clone();
                let expected = match task.state {
                    state if state.is_final() => Cancelled::Finished(state),
                    State::Running => {
                        let attempts = task.attempts;
                        let after = After { state: State::Cancelled, attempts, cools: true, waits: false };
                        self.end(id, "ann", after);
                        Cancelled::Cooling
                    }
                    _ => {
                        self.tasks.get_mut(&id).unwrap().state = State::Cancelled;
                        Cancelled::Done
                    }
                };
                assert_eq!(self.people.cancel(id, "ann").await.unwrap(), expected);
            }
            Op::Retry { which } => {
                let Some(id) = self.pick(which, |_| true) else { return };
                let until = self.coolings.range((id, 0)..=(id, i64::MAX)).map(|(_, (_, until))| *until).max();
                if until.is_some_and(|until| is_near(until, now)) {
                    return;
                }
                let task = self.tasks.get_mut(&id).unwrap();
                let until = until.filter(|_| task.on_abandon != OnAbandon::Retry);
                let answer = self.people.retry(id, "ann").await.unwrap();
                if !matches!(task.state, State::Failed | State::Cancelled) {
                    return assert_eq!(answer, Retried::NotFinished(task.state));
                }
                assert_eq!(matches!(answer, Retried::AfterCooling(_)), until.is_some(), "{answer:?}");
                let waits = until.is_some_and(|until| until > now);
                task.state = if waits { State::Scheduled } else { State::Pending };
                task.attempts = 0;
            }
            Op::Accept { which } => {
                let Some(id) = self.pick(which, |_| true) else { return };
                let said = self.log.iter().any(|(attempt, log)| attempt.task == id && log.late);
                let task = self.tasks.get_mut(&id).unwrap();
                let answer = self.people.accept(id, "ann").await.unwrap();
                if !matches!(task.state, State::Scheduled | State::Pending | State::Failed) {
                    assert_eq!(answer, Accepted::NotWaiting(task.state));
                } else if said {
                    assert!(matches!(answer, Accepted::Done(_)), "{answer:?}");
                    task.state = State::Succeeded;
                } else {
                    assert_eq!(answer, Accepted::NoEvidence);
                }
            }
            Op::Repair => {
                let counted = self.running() + self.cooling();
                let highest = "SELECT max(max_permits) FROM permitq_limit WHERE semaphore = 'default'";
                let cooling = (self.in_use - counted).clamp(0, self.db.int(highest).await);
                let expected = Repair { in_use: self.in_use, counted, cooling };
                assert_eq!(self.people.repair("default", HOLD, "ann").await.unwrap(), expected);
                self.in_use = counted + cooling;
                self.drift.extend((0..cooling).map(|_| i64::MAX));
            }
            Op::ByHand(edit) => self.edit(edit).await,
        }
    }

    fn come(&mut self, id: i64, state: State, priority: i32, on_abandon: OnAbandon, max_attempts: u32) {
        let task = Task {
            state,
            priority,
            run_at: 0,
            claim_no: 0,
            attempts: 0,
            max_attempts,
            on_abandon,
            consumer: None,
            until: 0,
            waits_for: None,
        };
        assert!(self.tasks.insert(id, task).is_none());
    }

    fn is_owner(&self, id: &str, attempt: Attempt) -> bool {
        self.tasks.get(&attempt.task).is_some_and(|task| {
            task.state == State::Running
                && task.claim_no == attempt.claim_no
                && task.consumer.as_deref() == Some(id)
        })
    }

    /// Who claims what, in order.
    fn claim(&mut self, id: &str, want: usize, freed: i64) -> Vec<Attempt> {
        let want = i64::try_from(want).unwrap();
        let free = self.max - self.in_use;
        let room = if want > freed { free + freed } else { free.min(0) + freed }.clamp(0, want);
        let mut due: Vec<_> = self.tasks.iter().filter(|(_, task)| task.state == State::Pending).collect();
        due.sort_by_key(|(id, task)| (-task.priority, task.run_at, **id));
        let alive = self.life(id) == Some(Life::Alive);
        let room = if alive { usize::try_from(room).unwrap() } else { 0 };
        let due: Vec<_> = due.into_iter().map(|(id, _)| *id).take(room).collect();
        let mut claimed = Vec::new();
        for task_id in due {
            let task = self.tasks.get_mut(&task_id).unwrap();
            task.state = State::Running;
            task.claim_no += 1;
            task.attempts += 1;
            task.consumer = Some(id.to_owned());
            claimed.push(Attempt { task: task_id, claim_no: task.claim_no });
        }
        self.free(freed - i64::try_from(claimed.len()).unwrap());
        claimed
    }

    async fn end_coolings(&mut self, limit: i64, now: i64) {
        let all = self.coolings.values().map(|(_, until)| *until).chain(self.drift.iter().copied());
        let all: Vec<_> = all.collect();
        if all.iter().any(|until| is_near(*until, now)) {
            return;
        }
        let due = i64::try_from(all.iter().filter(|until| **until <= now).count()).unwrap();
        let freed = self.people.end_coolings("default", now, limit).await.unwrap();
        assert_eq!(freed, due.min(limit));
        self.free(freed);
        // Which of those that were due, the database says.
        let left = self.people.holders().await.unwrap();
        let left: BTreeSet<_> =
            left.iter().filter_map(|holder| Some((holder.task?, holder.claim_no?))).collect();
        let before = self.cooling();
        self.coolings.retain(|attempt, (_, until)| *until > now || left.contains(attempt));
        while before - self.cooling() < freed {
            let over = self.drift.iter().position(|until| *until <= now).expect("what ended was due");
            self.drift.remove(over);
        }
    }

    async fn edit(&mut self, edit: Edit) {
        let db = self.db;
        match edit {
            Edit::Counter { in_use } => {
                db.sql(&format!("UPDATE permitq_semaphore SET in_use = {in_use}")).await;
                self.in_use = in_use;
            }
            Edit::DeleteTask { which } => {
                let Some(id) = self.pick(which, |_| true) else { return };
                db.sql(&format!("DELETE FROM permitq_task WHERE id = {id}")).await;
                self.tasks.remove(&id);
                self.keys.retain(|_, task| *task != id);
            }
            Edit::Reset { which } => {
                let Some(id) = self.pick(which, |task| task.state == State::Running) else { return };
                db.sql(&format!(
                    "UPDATE permitq_task SET state = 'pending', consumer = NULL, until = NULL WHERE id = {id}"
                ))
                .await;
                let task = self.tasks.get_mut(&id).unwrap();
                (task.state, task.consumer) = (State::Pending, None);
            }
            Edit::DeleteCooling { which } => {
                let all: Vec<_> = self.coolings.keys().copied().collect();
                let Some((task, claim_no)) = all.get(which % all.len().max(1)).copied() else { return };
                db.sql(&format!("DELETE FROM permitq_cooling WHERE task = {task} AND claim_no = {claim_no}"))
                    .await;
                self.coolings.remove(&(task, claim_no));
            }
            Edit::DeleteConsumer { who } => {
                let id = &self.fleet[who].consumer.id;
                db.sql(&format!("DELETE FROM permitq_consumer WHERE id = '{id}'")).await;
                self.consumers.remove(id);
            }
            Edit::Urgent { which } => {
                let Some(id) = self.pick(which, |task| task.state == State::Pending) else { return };
                db.sql(&format!("UPDATE permitq_task SET priority = 9 WHERE id = {id}")).await;
                self.tasks.get_mut(&id).unwrap().priority = 9;
            }
        }
    }

    /// The whole database is as foretold; its instants become the model's.
    async fn compare(&mut self) {
        let found = self.people.tasks(&Filter::default(), 10_000).await.unwrap();
        assert_eq!(found.len(), self.tasks.len());
        for row in found {
            let task = self.tasks.get_mut(&row.id).unwrap();
            let foretold = (task.state, task.claim_no, task.attempts, &task.consumer, task.priority);
            let is = (row.state, row.claim_no, row.attempts, &row.consumer, row.priority);
            assert_eq!(is, foretold, "{row:?}");
            let waits_for = task.waits_for.take();
            assert!(waits_for.is_none_or(|until| row.run_at.as_microsecond() >= until), "{row:?}");
            task.run_at = row.run_at.as_microsecond();
            task.until = row.until.map_or(0, Timestamp::as_microsecond);
        }
        let holders = self.people.holders().await.unwrap();
        let cooling: Vec<_> = holders.iter().filter(|h| h.state == PermitState::Cooling).collect();
        let named: Vec<_> =
            cooling.iter().filter_map(|holder| Some((holder.task?, holder.claim_no?))).collect();
        assert_eq!(named.iter().copied().collect::<BTreeSet<_>>(), self.coolings.keys().copied().collect());
        assert_eq!(i64::try_from(cooling.len()).unwrap(), self.cooling());
        self.drift.clear();
        for holder in cooling {
            let until = holder.until.as_microsecond();
            match holder.task.zip(holder.claim_no) {
                Some(attempt) => self.coolings.get_mut(&attempt).unwrap().1 = until,
                None => self.drift.push(until),
            }
        }
        assert_eq!(self.db.in_use().await, self.in_use);
        let known = self.people.consumers().await.unwrap();
        let living = self.consumers.iter().filter(|(_, (life, _))| *life != Life::Gone);
        assert_eq!(
            known.iter().map(|row| row.id.clone()).collect::<BTreeSet<_>>(),
            living.map(|(id, _)| id.clone()).collect()
        );
        for row in known {
            self.consumers.get_mut(&row.id).unwrap().1 = row.lease_until.as_microsecond();
        }
        let logged = self.db.int("SELECT count(*) FROM permitq_attempt").await;
        assert_eq!(logged, i64::try_from(self.log.len()).unwrap());
    }

    /// Whatever happened, every task comes to a final state and every permit is free in the end.
    pub(super) async fn come_to_rest(&mut self) {
        let everybody = (0..FLEET).map(|who| Op::Crash { who });
        for op in everybody.chain([Op::Tune { max: 9, by_hand: false }]) {
            self.step(op).await;
        }
        for round in 0.. {
            assert!(round < 200, "it does not come to rest: {:?}", self.tasks);
            let done = self.tasks.values().all(|task| task.state.is_final());
            if done && self.cooling() == 0 && self.in_use == 0 {
                break;
            }
            // The living beat first, so that only the others' leases are over.
            let pass = Op::Pass { span: Duration::from_secs(700) };
            let beats = (0..FLEET).map(|who| Op::Beat { who });
            let how = super::How::Succeeded;
            let rest = [
                Op::Fence,
                Op::Reclaim { limit: 50 },
                Op::Repair,
                Op::EndCoolings { limit: 50 },
                Op::Promote { limit: 50 },
                Op::Exchange { who: 0, ends: 9, how, want: 9 },
            ];
            for op in [pass].into_iter().chain(beats).chain(rest) {
                self.step(op).await;
            }
        }
        self.db.conservation().await;
        let audit = self.people.audit().await.unwrap();
        assert!(audit.impossible.is_empty(), "{audit:?}");
    }
}
