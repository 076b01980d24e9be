//! Random lives of a queue against a model that fits in the head, and that foretells every answer: which tasks are
//! claimed, what becomes of each, whose report counts, what the counter says. After each step the whole database is compared
//! with it. People edit by hand, consumers crash, freeze and leave, time passes, and nothing is done in the convenient order.
//!
//! A failure prints its steps, shrunk, and the seed that plays it again: `PERMITQ_TEST_SEED`.

mod rules;
mod world;

use std::time::Duration;

use permitq::model::OnAbandon;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::runtime;

use self::rules::How;
use self::world::World;
use crate::support::Db;

const FLEET: usize = 3;
/// Lives per database, and the most steps of each.
const LIVES: u32 = 24;
const STEPS: usize = 80;

#[derive(Clone, Debug)]
enum Op {
    Enqueue {
        tasks: usize,
        priority: i32,
        on_abandon: OnAbandon,
        max_attempts: u32,
        later: bool,
    },
    /// One with a business key, which may be there already.
    EnqueueKeyed {
        key: u8,
    },
    /// Ends some of what a consumer runs and claims anew.
    Exchange {
        who: usize,
        ends: usize,
        how: How,
        want: usize,
    },
    /// Says once more how an earlier attempt ended.
    Repeat {
        who: usize,
        which: usize,
    },
    /// The answer to an attempt comes when it is over, or before.
    Late {
        which: usize,
        clear: bool,
    },
    Beat {
        who: usize,
    },
    /// A process dies, and another starts; nobody is told.
    Crash {
        who: usize,
    },
    /// It drains, or takes its leave with claims in hand.
    Leave {
        who: usize,
        gone: bool,
    },
    /// Everything that waits for an instant is so much nearer to it.
    Pass {
        span: Duration,
    },
    Fence,
    Reclaim {
        limit: i64,
    },
    EndCoolings {
        limit: i64,
    },
    Promote {
        limit: i64,
    },
    Tune {
        max: i64,
        by_hand: bool,
    },
    Cancel {
        which: usize,
    },
    Retry {
        which: usize,
    },
    /// A person takes a late answer for the result.
    Accept {
        which: usize,
    },
    Repair,
    ByHand(Edit),
}

/// What a person does at a SQL client.
#[derive(Clone, Debug)]
enum Edit {
    Counter {
        in_use: i64,
    },
    DeleteTask {
        which: usize,
    },
    /// A running task is made pending.
    Reset {
        which: usize,
    },
    DeleteCooling {
        which: usize,
    },
    DeleteConsumer {
        who: usize,
    },
    Urgent {
        which: usize,
    },
}

fn edit() -> impl Strategy<Value = Edit> {
    let which = any::<usize>;
    prop_oneof![
        4 => (0..9i64).prop_map(|in_use| Edit::Counter { in_use }),
        1 => which().prop_map(|which| Edit::DeleteTask { which }),
        2 => which().prop_map(|which| Edit::Reset { which }),
        1 => which().prop_map(|which| Edit::DeleteCooling { which }),
        1 => (0..FLEET).prop_map(|who| Edit::DeleteConsumer { who }),
        1 => which().prop_map(|which| Edit::Urgent { which }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..FLEET;
    let which = any::<usize>;
    let policy = prop::sample::select(OnAbandon::ALL.to_vec());
    let how = prop::sample::select(How::ALL.to_vec());
    // Less than a lease, more than one, more than the longest bound.
    let span = prop::sample::select(vec![7, 45, 70, 300, 700]).prop_map(Duration::from_secs);
    prop_oneof![
        6 => (1..5usize, 0..3i32, policy, 1..4u32, any::<bool>()).prop_map(
            |(tasks, priority, on_abandon, max_attempts, later)| {
                Op::Enqueue { tasks, priority, on_abandon, max_attempts, later }
            }
        ),
        2 => (0..4u8).prop_map(|key| Op::EnqueueKeyed { key }),
        24 => (who(), 0..4usize, how, 0..5usize)
            .prop_map(|(who, ends, how, want)| Op::Exchange { who, ends, how, want }),
        3 => (who(), which()).prop_map(|(who, which)| Op::Repeat { who, which }),
        3 => (which(), any::<bool>()).prop_map(|(which, clear)| Op::Late { which, clear }),
        4 => who().prop_map(|who| Op::Beat { who }),
        3 => who().prop_map(|who| Op::Crash { who }),
        1 => (who(), any::<bool>()).prop_map(|(who, gone)| Op::Leave { who, gone }),
        6 => span.prop_map(|span| Op::Pass { span }),
        4 => Just(Op::Fence),
        5 => (1..5i64).prop_map(|limit| Op::Reclaim { limit }),
        4 => (1..5i64).prop_map(|limit| Op::EndCoolings { limit }),
        4 => (1..5i64).prop_map(|limit| Op::Promote { limit }),
        3 => (0..7i64, any::<bool>()).prop_map(|(max, by_hand)| Op::Tune { max, by_hand }),
        3 => which().prop_map(|which| Op::Cancel { which }),
        3 => which().prop_map(|which| Op::Retry { which }),
        2 => which().prop_map(|which| Op::Accept { which }),
        5 => Just(Op::Repair),
        6 => edit().prop_map(Op::ByHand),
    ]
}

async fn live(db: &Db, ops: Vec<Op>) {
    let mut world = World::new(db).await;
    // Busy from the beginning.
    let tasks =
        Op::Enqueue { tasks: 8, priority: 1, on_abandon: OnAbandon::Retry, max_attempts: 3, later: false };
    let claims = (0..2).map(|who| Op::Exchange { who, ends: 0, how: How::Succeeded, want: 2 });
    for op in [tasks].into_iter().chain(claims).chain(ops) {
        world.step(op).await;
    }
    world.come_to_rest().await;
}

fn random_lives(db: impl Future<Output = Db>) {
    let seed: u64 = match std::env::var("PERMITQ_TEST_SEED") {
        Ok(seed) => seed.parse().expect("PERMITQ_TEST_SEED is a number"),
        Err(_) => fastrand::u64(..),
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let db = runtime.block_on(async { db.await.migrated().await });
    // Shrinking is bounded, too: a failure is told in time.
    let config =
        Config { cases: LIVES, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.to_le_bytes().repeat(4));
    let lives = TestRunner::new_with_rng(config, rng).run(&vec(op(), 1..STEPS), |ops| {
        runtime.block_on(live(&db, ops));
        Ok(())
    });
    if let Err(error) = lives {
        panic!("{error}\nagain with PERMITQ_TEST_SEED={seed}");
    }
}

macro_rules! on {
    ($($database:ident)*) => {
        $(mod $database {
            #[test]
            fn random_lives_are_as_foretold() {
                super::random_lives(crate::support::Db::$database());
            }
        })*
    };
}
on! { sqlite postgres mariadb }
