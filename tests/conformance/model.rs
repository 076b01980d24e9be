//! Random lives of a queue against a model that fits in the head: permits are conserved and capped, final states are
//! final, `claim_no` only grows, no task uses more attempts than it has, and nothing but the rules decides what ends as
//! [`Recorded::Done`].

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use permitq::model::{Attempt, Claim, Ended, NewTask, OnAbandon, Outcome, State, Verdict, Why};
use permitq::store::{Cancelled, Filter, Recorded, Retried, Store};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime;

use crate::support::{Consumer, Db, LEASE, ended};

const FLEET: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Enqueue {
        tasks: usize,
        on_abandon: OnAbandon,
        max_attempts: u32,
    },
    /// Ends some of what a consumer runs and claims anew.
    Exchange {
        who: usize,
        ends: usize,
        how: usize,
        want: usize,
    },
    /// Says once more how an earlier attempt ended.
    Repeat {
        who: usize,
        which: usize,
    },
    Beat {
        who: usize,
    },
    /// A consumer dies, its lease passes, it is fenced, its tasks are taken back, and it starts anew.
    Crash {
        who: usize,
    },
    /// The calls of a share of the coolings must be over.
    CoolDown {
        every: i64,
    },
    Promote,
    Tune {
        max: i64,
    },
    Cancel {
        which: usize,
    },
    Retry {
        which: usize,
    },
    /// A person edits the counter, and the auditor finds out.
    Edit {
        in_use: i64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let who = 0..FLEET;
    let policy = prop::sample::select(OnAbandon::ALL.to_vec());
    prop_oneof![
        4 => (1..5usize, policy, 1..4u32)
            .prop_map(|(tasks, on_abandon, max_attempts)| Op::Enqueue { tasks, on_abandon, max_attempts }),
        12 => (who.clone(), 0..4usize, 0..7usize, 0..5usize)
            .prop_map(|(who, ends, how, want)| Op::Exchange { who, ends, how, want }),
        2 => (who.clone(), any::<usize>()).prop_map(|(who, which)| Op::Repeat { who, which }),
        1 => who.clone().prop_map(|who| Op::Beat { who }),
        2 => who.prop_map(|who| Op::Crash { who }),
        3 => (1..3i64).prop_map(|every| Op::CoolDown { every }),
        2 => Just(Op::Promote),
        2 => (0..7i64).prop_map(|max| Op::Tune { max }),
        2 => any::<usize>().prop_map(|which| Op::Cancel { which }),
        2 => any::<usize>().prop_map(|which| Op::Retry { which }),
        1 => (0..9i64).prop_map(|in_use| Op::Edit { in_use }),
    ]
}

fn outcome(how: usize) -> Outcome {
    match how {
        0 | 1 => Outcome::succeeded(None),
        2 => Outcome::failed("no"),
        3 => Outcome::retry("busy", None),
        4 => Outcome::not_started("window"),
        5 => Outcome::unclear(Why::Timeout, "slow"),
        _ => Outcome {
            verdict: Verdict::HandedBack { error: "shutdown".into() },
            ..Outcome::unclear(Why::Shutdown, "")
        },
    }
}

/// What the model knows.
struct World<'d> {
    db: &'d Db,
    people: Store,
    fleet: Vec<Consumer>,
    running: Vec<Vec<Claim>>,
    starts: usize,
    max: i64,
    in_use: i64,
    /// State and `claim_no` of every task at the last look.
    seen: BTreeMap<i64, (State, i64)>,
    said: Vec<(usize, Ended)>,
    /// Attempts that somebody else ended.
    taken: HashSet<Attempt>,
    revived: Option<i64>,
}

impl<'d> World<'d> {
    async fn new(db: &'d Db) -> Self {
        for table in ["task", "cooling", "attempt", "consumer", "action"] {
            db.sql(&format!("DELETE FROM permitq_{table}")).await;
        }
        db.sql("UPDATE permitq_semaphore SET in_use = 0, max_permits = 4").await;
        let mut world = Self {
            db,
            people: db.store(),
            fleet: Vec::new(),
            running: (0..FLEET).map(|_| Vec::new()).collect(),
            starts: 0,
            max: 4,
            in_use: 0,
            seen: BTreeMap::new(),
            said: Vec::new(),
            taken: HashSet::new(),
            revived: None,
        };
        for _ in 0..FLEET {
            let consumer = world.start().await;
            world.fleet.push(consumer);
        }
        world
    }

    async fn start(&mut self) -> Consumer {
        self.starts += 1;
        self.db.consumer(&format!("c{}", self.starts)).await
    }

    fn task(&self, which: usize) -> Option<i64> {
        self.seen.keys().nth(which % self.seen.len().max(1)).copied()
    }

    async fn play(&mut self, op: Op) {
        let db = self.db;
        match op {
            Op::Enqueue { tasks, on_abandon, max_attempts } => {
                let task = NewTask {
                    on_abandon: Some(on_abandon),
                    max_attempts: Some(max_attempts),
                    ..NewTask::new("call", "{}")
                };
                self.people.enqueue(&vec![task; tasks]).await.unwrap();
            }
            Op::Exchange { who, ends, how, want } => self.exchange(who, ends, how, want).await,
            Op::Repeat { who, which } => {
                let Some((by, said)) = self.said.get(which % self.said.len().max(1)).cloned() else { return };
                let ours = by == self.incarnation(who) && !self.taken.contains(&said.attempt);
                let expected = if ours { Recorded::Done } else { Recorded::Lost };
                assert_eq!(self.fleet[who].finish(&[said]).await, [expected]);
            }
            Op::Beat { who } => {
                let id = self.fleet[who].id.clone();
                let mut held = self.fleet[who].store.beat(&id, LEASE).await.unwrap().unwrap();
                let mut known: Vec<_> = self.running[who].iter().map(|claim| claim.attempt).collect();
                known.retain(|attempt| !self.taken.contains(attempt));
                held.sort_unstable();
                known.sort_unstable();
                assert_eq!(held, known);
            }
            Op::Crash { who } => {
                db.vanish(&self.fleet[who].id).await;
                let lost = self.running[who].drain(..).map(|claim| claim.attempt);
                let mut lost: Vec<_> = lost
                    .filter(|attempt| !self.taken.contains(attempt))
                    .map(|attempt| attempt.task)
                    .collect();
                let mut reclaimed = db.reclaim().await;
                lost.sort_unstable();
                reclaimed.sort_unstable();
                assert_eq!(reclaimed, lost);
                self.fleet[who] = self.start().await;
            }
            Op::CoolDown { every } => {
                let rows = format!("id % {every} = 0");
                db.age("permitq_cooling", "until", Duration::from_hours(24), &rows).await;
                self.in_use -= self.people.end_coolings("default", 1000).await.unwrap();
            }
            Op::Promote => {
                db.age("permitq_task", "run_at", Duration::from_hours(1), "state = 'scheduled'").await;
                self.people.promote(1000).await.unwrap();
            }
            Op::Tune { max } => {
                self.max = max;
                db.set_max(max).await;
            }
            Op::Cancel { which } => {
                let Some(id) = self.task(which) else { return };
                let (state, claim_no) = self.seen[&id];
                let expected = match state {
                    state if state.is_final() => Cancelled::Finished(state),
                    State::Running => Cancelled::Cooling,
                    _ => Cancelled::Done,
                };
                if state == State::Running {
                    self.taken.insert(Attempt { task: id, claim_no });
                }
                assert_eq!(self.people.cancel(id, "ann").await.unwrap(), expected);
            }
            Op::Retry { which } => {
                let Some(id) = self.task(which) else { return };
                let state = self.seen[&id].0;
                let answer = self.people.retry(id, "ann").await.unwrap();
                if matches!(state, State::Failed | State::Cancelled) {
                    assert!(matches!(answer, Retried::Done | Retried::AfterCooling(_)));
                    self.revived = Some(id);
                } else {
                    assert_eq!(answer, Retried::NotFinished(state));
                }
            }
            Op::Edit { in_use } => {
                db.sql(&format!("UPDATE permitq_semaphore SET in_use = {in_use}")).await;
                let repair = self.people.repair("default", LEASE, "auditor").await.unwrap();
                assert_eq!(repair.counted, self.in_use);
                assert!(repair.cooling <= (in_use - self.in_use).max(0));
                self.in_use += repair.cooling;
            }
        }
    }

    /// The number in a consumer's id: every start is another one.
    fn incarnation(&self, who: usize) -> usize {
        self.fleet[who].id[1..].parse().unwrap()
    }

    async fn exchange(&mut self, who: usize, ends: usize, how: usize, want: usize) {
        let ends = ends.min(self.running[who].len());
        let done: Vec<Ended> =
            self.running[who].drain(..ends).map(|claim| ended(claim, &outcome(how))).collect();
        let got = self.fleet[who].exchange(&done, want).await;
        let mut freed = 0;
        for (ended, recorded) in done.into_iter().zip(got.recorded) {
            let expected = if self.taken.contains(&ended.attempt) { Recorded::Lost } else { Recorded::Done };
            assert_eq!(recorded, expected, "{ended:?}");
            freed += i64::from(recorded == Recorded::Done && ended.settlement.cooling.is_none());
            let incarnation = self.incarnation(who);
            self.said.push((incarnation, ended));
        }
        self.in_use -= freed;
        let claimed = i64::try_from(got.claims.len()).unwrap();
        assert!(claimed <= i64::try_from(want).unwrap().min((self.max - self.in_use).max(0)));
        self.in_use += claimed;
        self.running[who].extend(got.claims);
    }

    async fn check(&mut self) {
        self.db.holds(self.in_use).await;
        let tasks = self.people.tasks(&Filter::default(), 10_000).await.unwrap();
        for task in tasks {
            assert!(task.max_attempts.is_none_or(|most| task.attempts <= most), "{task:?}");
            let now = (task.state, task.claim_no);
            if let Some((state, claim_no)) = self.seen.insert(task.id, now) {
                assert!(task.claim_no >= claim_no, "{task:?}");
                let stays = state.is_final() && self.revived != Some(task.id);
                assert!(!stays || now == (state, claim_no), "it was {state}: {task:?}");
            }
        }
        self.revived = None;
    }
}

async fn live(db: &Db, ops: Vec<Op>) {
    let mut world = World::new(db).await;
    for op in ops {
        world.play(op).await;
        world.check().await;
    }
    // Whatever happened, every task comes to a final state and every permit is free in the end.
    for op in (0..FLEET).map(|who| Op::Crash { who }).chain([Op::Tune { max: 9 }]) {
        world.play(op).await;
        world.check().await;
    }
    while world.seen.values().any(|(state, _)| !state.is_final()) || world.in_use > 0 {
        for op in [Op::CoolDown { every: 1 }, Op::Promote, Op::Exchange { who: 0, ends: 9, how: 0, want: 9 }]
        {
            world.play(op).await;
            world.check().await;
        }
    }
    let audit = db.store().audit().await.unwrap();
    assert!(audit.impossible.is_empty(), "{audit:?}");
}

fn random_lives(db: impl Future<Output = Db>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let db = runtime.block_on(async { db.await.migrated().await });
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&vec(op(), 1..40), |ops| {
            runtime.block_on(live(&db, ops));
            Ok(())
        })
        .unwrap();
}

macro_rules! on {
    ($($database:ident)*) => {
        $(mod $database {
            #[test]
            fn random_lives_keep_the_promises() {
                super::random_lives(crate::support::Db::$database());
            }
        })*
    };
}
on! { sqlite postgres mariadb }
