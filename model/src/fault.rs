//! What can be done wrong on purpose: the ten holes of the recipe that people copy, and slips of our own.

/// One deviation from the protocol. A model with any of them must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 1: the permit is taken in a transaction before the task's.
    PermitThenTask,
    /// 2: a finish releases a permit whether or not the task's row changed.
    ReleaseInFinally,
    /// 3: the reclaimer selects stale ids, then updates by id.
    SelectThenUpdate,
    /// 4: the reclaimer resets tasks in one transaction and sees to their permits in the next.
    ResetThenPermits,
    /// 5: `consumer = me` is the only fence.
    ConsumerIsTheFence,
    /// 6: the reclaimer does not look at the budget of attempts.
    EndlessAttempts,
    /// 7: the reclaimer frees the permit of a call that may still run.
    FreedAtReclaim,
    /// 8: a process that was paused goes on where it was, without looking at its clock.
    NoStartWindow,
    /// 9: upkeep judges by a local clock, which is ahead by [`Fault::AHEAD`].
    LocalClock,
    /// 10: permits are counted in one statement and subtracted in another, without a guard.
    CountedElsewhere,

    /// The bound of a permit leaves out the start window.
    HoldWithoutStartWindow,
    /// The bound of a permit leaves out the request's way to the downstream.
    HoldWithoutTheWay,
    /// The bound of a permit leaves out the call.
    HoldWithoutTheCall,
    /// A hand-over keeps its permits although the cap was lowered.
    HandOverBypassesMax,
    /// What the database has and the process does not know is handed back while an answer is on its way.
    HandBackInFlight,
    /// A late answer ends whatever cools for its task.
    LateByTask,
    /// A broken connection is taken for the end of the call.
    BrokenIsClear,
}

impl Fault {
    /// How far a wrong local clock is ahead, in ticks.
    pub const AHEAD: i8 = 3;

    /// The holes, in their order.
    pub const HOLES: [Self; 10] = [
        Self::PermitThenTask,
        Self::ReleaseInFinally,
        Self::SelectThenUpdate,
        Self::ResetThenPermits,
        Self::ConsumerIsTheFence,
        Self::EndlessAttempts,
        Self::FreedAtReclaim,
        Self::NoStartWindow,
        Self::LocalClock,
        Self::CountedElsewhere,
    ];
}
