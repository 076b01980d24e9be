//! `permitq pause` and `permitq resume`: what is claimed, and what is not for the time being.

use clap::{Args, Subcommand};
use serde_json::json;

use super::fail::Failure;
use super::out::Out;
use super::who::who;
use super::{Global, permits, place};
use crate::model::{KIND_MAX, NewTask, Scope};

#[derive(Args, Debug)]
pub(super) struct Pause {
    #[command(subcommand)]
    what: What,
    /// Why, for those who wonder
    #[arg(long, global = true, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Every task
    Fleet,
    /// The tasks of a kind
    Kind {
        /// Which
        name: String,
    },
    /// The tasks of a semaphore; its `max_permits` stays as it is
    Semaphore {
        /// Which
        name: String,
    },
    /// The tasks that `[downstream.NAME]` serves, also where it was found down: no probe is sent
    Downstream {
        /// Which
        name: String,
    },
}

impl What {
    fn parts(&self) -> (Scope, &str) {
        match self {
            Self::Fleet => (Scope::Fleet, ""),
            Self::Kind { name } => (Scope::Kind, name),
            Self::Semaphore { name } => (Scope::Semaphore, name),
            Self::Downstream { name } => (Scope::Downstream, name),
        }
    }
}

/// `kind report`.
pub(super) fn words(scope: Scope, name: &str) -> String {
    format!("{scope} {name}").trim_end().to_owned()
}

pub(super) async fn pause(options: Pause, global: &Global, out: &Out) -> Result<(), Failure> {
    let (scope, name) = options.what.parts();
    if scope != Scope::Fleet && NewTask::new(name, "").check().is_err() {
        return Err(Failure::Usage(format!(
            "{scope} {name:?}: a name has 1 to {KIND_MAX} characters, none of them control characters"
        )));
    }
    let mut store = place::open(global).await?;
    if scope == Scope::Semaphore {
        permits::known(&mut store, name).await?;
    }
    store.pause_claims(scope, name, options.why.as_deref(), &who()).await?;
    let words = words(scope, name);
    out.answer(&json!({"what": scope.as_str(), "name": name, "paused": true}), || {
        format!("{words}: paused; running calls go on, nothing new starts until `permitq resume {words}`")
    })?;
    Ok(())
}

pub(super) async fn resume(what: What, global: &Global, out: &Out) -> Result<(), Failure> {
    let (scope, name) = what.parts();
    let mut store = place::open(global).await?;
    let was = store.resume_claims(scope, name, &who()).await?;
    let words = words(scope, name);
    if !was {
        out.note(&format!("{words} was not paused; `permitq permits` shows what is"));
    }
    out.answer(&json!({"what": scope.as_str(), "name": name, "paused": false}), || {
        if was { format!("{words}: resumed") } else { String::new() }
    })?;
    Ok(())
}
