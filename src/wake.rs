//! Wake-ups: a hint that something was committed. The probe is the truth; a wake-up only makes it come sooner.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::store::Database;

/// Tells when to look.
#[derive(Clone, Debug)]
pub(crate) struct Wake {
    notify: Arc<Notify>,
    connected: bool,
}

impl Wake {
    /// Connects to what the database offers; nothing, where it offers nothing.
    pub(crate) fn connect(_database: &Database) -> Self {
        Self { notify: Arc::default(), connected: false }
    }

    /// Waits for the next hint.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }

    /// Whether hints come at all; without, polls do not back off.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }
}
