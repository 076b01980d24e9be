//! Logs go to standard error, for people or as JSON lines. `PERMITQ_LOG` filters them, such as `debug` or
//! `permitq=debug,sqlx=info`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use super::fail::Failure;
use crate::config::{Config, LogFormat};

pub(super) fn start(config: &Config) -> Result<(), Failure> {
    let filter = std::env::var("PERMITQ_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = EnvFilter::try_new(filter.as_deref().unwrap_or("info"))
        .map_err(|error| Failure::Usage(format!("PERMITQ_LOG: {error}; write a level such as debug")))?;
    let stderr = std::io::stderr;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_target(false);
    match config.log.format {
        LogFormat::Human => log.with_ansi(stderr().is_terminal()).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
