//! Scaled time: what takes minutes in production takes seconds here, in the same proportions.

/// Consumer processes.
pub(super) const MEMBERS: usize = 8;
/// The cap at the start and at the end.
pub(super) const CAP: i64 = 8;
/// The highest cap that retuning sets; more calls than this the downstream refuses.
pub(super) const CAP_MOST: i64 = 10;
/// The cap's only semaphore.
pub(super) const SEMAPHORE: &str = "default";
/// The kind of every task.
pub(super) const KIND: &str = "chaos";

/// The longest call, in milliseconds.
pub(super) const CALL_MOST: u64 = 2_000;
pub(super) const LEASE: u64 = 3_000;
const HEARTBEAT: u64 = 300;
const RECLAIM: u64 = 300;
const STATEMENT: u64 = 2_000;
/// A claim's call has arrived downstream by then, or never will: start window, connect, user timeout.
pub(super) const ARRIVAL: u64 = 500 + 300 + 400;
/// From its claim on, a permit is held at most so long: that, the call timeout and the clock's slack.
pub(super) const HOLD: u64 = ARRIVAL + 2_200 + 2_000;
/// Two passes of upkeep, jitter included.
const PASSES: u64 = 2 * RECLAIM * 5 / 4;
/// What a machine of two busy cores may add to anything.
pub(super) const MACHINE: u64 = 1_000;
/// A counter edited by hand is right again by then: one pass, and what it takes.
pub(super) const REPAIR: u64 = RECLAIM * 5 / 4 + MACHINE;
/// SIGTERM: calls that last longer than this are handed back.
const GRACE: u64 = 1_000;

/// After a fault every permit it touched is free by then: the later of lease + two beats + two passes, and the bound
/// stored at the claim + one pass. A heart may hang in a dead connection for a quarter of the lease.
pub(super) const RECOVERY: u64 = {
    let reclaimed = LEASE + LEASE / 4 + HEARTBEAT + PASSES;
    let cooled = HOLD + PASSES / 2;
    if reclaimed > cooled { reclaimed + MACHINE } else { cooled + MACHINE }
};

/// The server ends a transaction whose client is frozen or cut off in the midst of it, with its locks, after so long.
pub(super) const IDLE: u64 = 1_000;
/// Who started within a bound may have to wait so long after it: it leaves what cools to older consumers until it has
/// watched the database's clock for as long as any permit can be held.
pub(super) const YOUTH: u64 = HOLD + PASSES / 2;

/// How long the rest may take once the faults have ended.
pub(super) fn drain(tasks: usize) -> u64 {
    let rounds = (tasks as u64).div_ceil(CAP.unsigned_abs());
    // The clock's return is a step as well, and holds what cools for as long again.
    rounds * CALL_MOST + LEASE + PASSES + 2 * HOLD + 5_000
}

/// The consumers' configuration, without the two URLs, which differ per consumer.
pub(super) fn config() -> String {
    format!(
        "[database]\nstatement_timeout = \"{STATEMENT}ms\"\nclock_slack = \"2s\"\n\
         [consumer]\nslots = 4\npoll = \"200ms\"\n\
         [lease]\nduration = \"{LEASE}ms\"\nheartbeat = \"{HEARTBEAT}ms\"\nreclaim = \"{RECLAIM}ms\"\n\
         [retry]\nmax_attempts = 100\nbackoff = \"100ms\"\nbackoff_cap = \"1s\"\n\
         [shutdown]\ngrace = \"{GRACE}ms\"\n\
         [downstream.default]\ncall_timeout = \"2200ms\"\nconnect_timeout = \"300ms\"\n\
         tcp_user_timeout = \"400ms\"\nstart_window = \"500ms\"\n"
    )
}
