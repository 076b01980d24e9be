//! `permitq stub`: a stub downstream that counts the calls it has in flight.

use std::net::SocketAddr;

use clap::Args;

use super::fail::Failure;
use super::out::Out;
use crate::downstream::stub::{self, StubOptions};
use crate::shutdown::{self, Stage};

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

/// Until SIGTERM or SIGINT; then prints what it has seen.
pub(super) async fn run(options: &Options, out: &Out) -> Result<(), Failure> {
    let Options { listen, limit, default_ms, stop_on_disconnect } = *options;
    let stub = StubOptions { listen, limit, default_ms, stop_on_disconnect, ..StubOptions::default() };
    let cannot = |error| {
        Failure::Failed(format!("cannot listen on {listen}: {error}; --listen takes another address"))
    };
    let stub = stub::start(stub).await.map_err(cannot)?;
    let (trigger, mut shutdown) = shutdown::channel();
    trigger.on_signals().map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))?;
    let limit = limit.map_or_else(|| "any number of".to_owned(), |limit| limit.to_string());
    out.note(&format!(
        "stub downstream at {}, takes {limit} calls at once; GET /summary tells what it saw",
        stub.url()
    ));
    shutdown.past(Stage::Run).await;
    let seen = stub.shutdown().await;
    out.answer(&seen, || {
        format!(
            "{} calls, at most {} in flight, {} overruns, {} duplicates",
            seen.calls, seen.max_in_flight, seen.overruns, seen.duplicates
        )
    })?;
    Ok(())
}
