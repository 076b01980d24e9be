//! How long a call may take, and how long its permit must be held if nobody sees its end.

use std::time::Duration;

use super::{OnAbandon, Retry};

/// The limits and policies of a downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A claim that has not started by then is handed back.
    pub start_window: Duration,
    /// Until the connection stands.
    pub connect_timeout: Duration,
    /// Until the kernel gives up unacknowledged data.
    pub tcp_user_timeout: Duration,
    /// From the request's arrival on, no call of ours can run longer downstream.
    pub call_timeout: Duration,
    /// How far the database's clock may be ahead after a failover to another host.
    pub clock_slack: Duration,
    /// The downstream ends a call when its caller hangs up.
    pub stops_on_disconnect: bool,
    /// What an unclear end does to tasks that do not say.
    pub on_abandon: OnAbandon,
    /// When a failed attempt runs again.
    pub retry: Retry,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_window: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            tcp_user_timeout: Duration::from_mins(1),
            call_timeout: Duration::from_mins(8),
            clock_slack: Duration::from_secs(5),
            stops_on_disconnect: false,
            on_abandon: OnAbandon::default(),
            retry: Retry::default(),
        }
    }
}

impl Limits {
    /// How long after its claim a permit is held at most. A call begins downstream when it arrives, not when it is
    /// sent, so everything that can delay its arrival counts before the call's own limit; and the clock that judges the end
    /// may be another host's than the one that stamped the claim.
    pub fn hold(&self) -> Duration {
        self.start_window
            + self.connect_timeout
            + self.tcp_user_timeout
            + self.call_timeout
            + self.clock_slack
    }
}
