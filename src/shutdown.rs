//! Stopping in order: first drain, then at once. A signal handler (or a caller) moves the stage forward, never back.

use tokio::sync::watch;

/// How far a shutdown has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Work as usual.
    #[default]
    Run,
    /// Claim nothing new; let running calls end for up to the grace.
    Drain,
    /// Do not wait for running calls.
    Now,
}

/// Moves the stage forward.
#[derive(Clone, Debug)]
pub struct Trigger(watch::Sender<Stage>);

/// Sees the stage.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Stage>);

/// A trigger and what it moves.
pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(Stage::Run);
    (Trigger(sender), Shutdown(receiver))
}

impl Trigger {
    /// Drain on the first call, stop waiting on the second.
    pub fn advance(&self) {
        self.0.send_modify(|stage| {
            *stage = if *stage == Stage::Run { Stage::Drain } else { Stage::Now };
        });
    }

    /// Drain, if that has not begun.
    pub fn drain(&self) {
        self.0.send_modify(|stage| *stage = Stage::Drain.max(*stage));
    }

    /// Advances at each SIGTERM or SIGINT, and drains at a SIGHUP (the terminal is gone, and so is whoever could say more), for as long as the process lives.
    ///
    /// # Errors
    /// Where the signal handlers cannot be installed.
    pub fn on_signals(self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = hangup.recv() => {
                        self.drain();
                        continue;
                    }
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                self.advance();
            }
        });
        Ok(())
    }
}

impl Shutdown {
    /// How far it has gone.
    pub fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    /// Waits until the stage is past `stage`; for ever where every trigger is gone.
    pub async fn past(&mut self, stage: Stage) {
        if self.0.wait_for(|now| *now > stage).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
