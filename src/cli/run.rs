//! `permitq run`: one consumer of the fleet.

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use futures_util::future::OptionFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::fail::Failure;
use super::{Global, log, place};
use crate::clock::Clock;
use crate::config::{Config, Downstream, Role};
use crate::consumer::{self, Consumer, Service, Services};
use crate::downstream::{BadHttp, Http, HttpOptions, Probe};
use crate::schedule::{self, Scheduler};
use crate::shutdown::{self, Shutdown, Stage};
use crate::store::Database;
use crate::upkeep::{self, Prober, Upkeep};

/// Run one consumer of the fleet: claim tasks, call the downstream, record the ends.
///
/// SIGTERM or SIGINT: nothing new is claimed, running calls may end for up to the grace. A second signal skips the wait.
/// Exit codes: 0 drained, 1 failed, 2 wrong configuration, 3 grace over and the rest handed back, 4 second signal,
/// 5 stuck.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// Calls at once in this process
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// What people call it; its id is this name and a random part
    #[arg(long)]
    name: Option<String>,
    /// What this process does: consume, schedule, reclaim
    #[arg(long, value_name = "ROLE,…")]
    roles: Option<String>,
    /// Drain when standard input ends: a child that outlives its fleet stops by itself
    #[arg(long, hide = true)]
    while_stdin: bool,
}

impl Options {
    /// What its options set in the configuration.
    fn flags(&self) -> Vec<(String, String)> {
        let slots = self.slots.map(|slots| ("consumer.slots", slots.to_string()));
        let name = self.name.clone().map(|name| ("consumer.name", name));
        let roles = self.roles.clone().map(|roles| ("consumer.roles", roles));
        [slots, name, roles].into_iter().flatten().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    pub(super) async fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let config = &global.config(self.flags())?;
        log::start(config)?;
        let database = place::prepared(config).await?;
        let (trigger, shutdown) = shutdown::channel();
        trigger
            .clone()
            .on_signals()
            .map_err(|error| Failure::Failed(format!("cannot listen for signals: {error}")))?;
        if self.while_stdin {
            // A thread, since the read blocks until the pipe ends: nothing is ever sent.
            std::thread::spawn(move || {
                let _ended = std::io::stdin().read(&mut [0]);
                trigger.drain();
            });
        }
        serve(config, &database, shutdown).await
    }
}

/// Does what the roles say until shutdown.
async fn serve(config: &Config, database: &Database, mut shutdown: Shutdown) -> Result<ExitCode, Failure> {
    let roles = &config.consumer.roles;
    let services = if roles.contains(&Role::Consume) { services(config)? } else { Services::default() };
    let options = options(config);
    let stop = CancellationToken::new();
    let prober = Prober::new(database, config.lease.reclaim, probes(config)?);
    let upkeep = if roles.contains(&Role::Reclaim) {
        let upkeep = upkeep::Options {
            every: config.lease.reclaim,
            lease: config.lease.duration,
            heartbeat: config.lease.heartbeat,
            hold: config.longest_hold(),
            retention: config.retention,
            ageing: config.consumer.ageing,
            name: format!("{} on {}", std::process::id(), options.host),
        };
        let mut upkeep = Upkeep::new(database, Clock::default(), upkeep);
        upkeep.begin().await?;
        let upkeep = upkeep.run(stop.clone());
        let prober = prober.has_probes().then(|| prober.run(stop.clone()));
        Some(tokio::spawn(async { tokio::join!(upkeep, OptionFuture::from(prober)) }))
    } else {
        None
    };
    // A loop of ours that dies takes the process with it: the leases do the rest.
    let upkeep = upkeep.map(|upkeep| {
        tokio::spawn(async move {
            if let Err(error) = upkeep.await {
                tracing::error!(%error, "upkeep died");
                std::process::exit(1);
            }
        })
    });
    let scheduler = roles.contains(&Role::Schedule).then(|| {
        let options = schedule::Options { poll: config.consumer.poll };
        let scheduler = Scheduler::new(database, Clock::default(), options).run(stop.clone());
        tokio::spawn(async move {
            if let Err(error) = tokio::spawn(scheduler).await {
                tracing::error!(%error, "the scheduler died");
                std::process::exit(1);
            }
        })
    });
    let code = if roles.contains(&Role::Consume) {
        let consumer = Consumer { database: database.clone(), services, options, clock: Clock::default() };
        let name = consumer.options.name.clone();
        consumer.run(shutdown).instrument(tracing::info_span!("run", name)).await?.code()
    } else {
        shutdown.past(Stage::Run).await;
        0
    };
    stop.cancel();
    if let Some(upkeep) = upkeep {
        upkeep.await.map_err(|error| Failure::Failed(format!("upkeep: {error}")))?;
    }
    if let Some(scheduler) = scheduler {
        scheduler.await.map_err(|error| Failure::Failed(format!("schedules: {error}")))?;
    }
    Ok(ExitCode::from(code))
}

fn options(config: &Config) -> consumer::Options {
    let defaults = consumer::Options::default();
    consumer::Options {
        name: config.consumer.name.clone().unwrap_or_else(|| defaults.host.clone()),
        slots: config.consumer.slots,
        poll: config.consumer.poll,
        lease: config.lease.duration,
        heartbeat: config.lease.heartbeat,
        grace: config.shutdown.grace,
        on_stuck: || std::process::exit(5),
        ..defaults
    }
}

fn services(config: &Config) -> Result<Services, Failure> {
    let mut services = Services::default();
    for (name, downstream) in
        config.require_downstream().map_err(|problem| Failure::Usage(problem.to_string()))?
    {
        let service =
            service(downstream).map_err(|error| Failure::Usage(format!("[downstream.{name}]: {error}")))?;
        if name == "default" { services.add_rest(service) } else { services.add(name, service) }
    }
    Ok(services)
}

fn probes(config: &Config) -> Result<Vec<(String, Option<Probe>)>, Failure> {
    let probe = |(name, downstream): (&String, &Downstream)| {
        let probe = downstream.probe.as_ref();
        let probe = probe.map(|url| Probe::new(url.expose().as_str(), &http(downstream)?)).transpose();
        let probe = probe.map_err(|error| Failure::Usage(format!("[downstream.{name}]: probe: {error}")))?;
        Ok((name.clone(), probe))
    };
    config.downstream.iter().map(probe).collect()
}

fn service(downstream: &Downstream) -> Result<Service, BadHttp> {
    let handler = Arc::new(Http::new(http(downstream)?)?);
    Ok(Service { semaphore: downstream.semaphore.clone(), limits: downstream.limits, handler })
}

fn http(downstream: &Downstream) -> Result<HttpOptions, BadHttp> {
    let limits = downstream.limits;
    let mut headers = Vec::new();
    for (name, value) in &downstream.headers {
        let value = value.to_str().map_err(|_| BadHttp::HeaderValue(name.to_string()))?;
        headers.push((name.to_string(), value.to_owned()));
    }
    Ok(HttpOptions {
        url: downstream.url.expose().to_string(),
        method: downstream.method.to_string(),
        headers,
        secrets: downstream.secrets().iter().map(|secret| secret.expose().to_owned()).collect(),
        ca_file: downstream.ca_file.clone(),
        connect_timeout: limits.connect_timeout,
        read_timeout: downstream.read_timeout,
        tcp_user_timeout: limits.tcp_user_timeout,
        unclear_statuses: downstream.unclear_statuses.iter().copied().collect(),
        down_statuses: downstream.down_statuses.iter().copied().collect(),
        retry_statuses: downstream.retry_statuses.iter().copied().collect(),
        fail_statuses: downstream.fail_statuses.iter().copied().collect(),
        stops_on_disconnect: limits.stops_on_disconnect,
        ..HttpOptions::default()
    })
}
