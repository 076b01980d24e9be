//! `permitq stub`: a stub downstream that counts the calls it has in flight.

use std::net::SocketAddr;

use clap::Args;

use super::fail::Failure;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// Calls it bears at once; more are counted as overruns
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// How long a call takes that does not say
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    default_ms: u64,
    /// End a call when its caller hangs up
    #[arg(long)]
    stop_on_disconnect: bool,
}

// `permitq::downstream::stub::start` plugs in here.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let Options { listen, limit: _, default_ms: _, stop_on_disconnect: _ } = options;
    Err(Failure::Failed(format!("cannot listen on {listen}: this build has no stub downstream")))
}
