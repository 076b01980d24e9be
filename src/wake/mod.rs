//! Wake-ups: a hint that something was committed. The probe is the truth; a wake-up only makes it come sooner.
//!
//! `SQLite` says nothing to other processes, but every commit writes to the `-wal` file, and inotify (Linux) tells of that
//! within a fraction of a millisecond. PostgreSQL notifies, over a connection of its own. MySQL has nothing to offer.
//! A hint may be missing or spurious; nothing depends on it but the delay.
//!
//! An idle fleet writes too: its heartbeats. Eight processes that look after each other's beats are eight times as many
//! reads as there are beats, and more than all else they do; asking the database whether it was only a beat would itself be
//! that read, and a counter kept by triggers would tax every claim. So [`wal`] reads the written frames from the file
//! itself, which costs no transaction, and leaves beats out.

mod wal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventMask, Inotify, WatchMask};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
#[cfg(feature = "postgres")]
use tokio::time::timeout;
use tokio::time::{Instant as Moment, sleep, sleep_until};

use self::wal::Wal;
use crate::store::{Database, Dialect};

/// Tells when to look.
#[derive(Debug)]
pub(crate) struct Wake {
    hint: Arc<Hint>,
    watcher: Option<JoinHandle<()>>,
}

/// Written by the watcher, read by the consumer's loop.
#[derive(Debug, Default)]
struct Hint {
    notify: Notify,
    connected: AtomicBool,
}

impl Hint {
    /// Polls must come often again.
    fn lost(&self) {
        self.connected.store(false, Ordering::Relaxed);
        self.notify.notify_one();
    }
}

impl Wake {
    /// Connects to what the database offers.
    pub(crate) fn connect(database: &Database) -> Self {
        Self::to(database, "permitq")
    }

    /// The same for changes of schedules, where the database tells them apart.
    pub(crate) fn connect_to_schedules(database: &Database) -> Self {
        Self::to(database, "permitq_schedule")
    }

    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "only PostgreSQL has channels"))]
    fn to(database: &Database, channel: &'static str) -> Self {
        let hint = Arc::<Hint>::default();
        let watcher = match (database.dialect(), database.file()) {
            (Dialect::Sqlite, Some(file)) => Some(tokio::spawn(watch(file, hint.clone()))),
            #[cfg(feature = "postgres")]
            (Dialect::Postgres, _) => Some(tokio::spawn(listen(database.clone(), channel, hint.clone()))),
            _ => None,
        };
        Self { hint, watcher }
    }

    /// Waits for the next hint.
    pub(crate) async fn woken(&self) {
        self.hint.notify.notified().await;
    }

    /// Whether hints come at all; without, polls come often.
    pub(crate) fn is_connected(&self) -> bool {
        self.hint.connected.load(Ordering::Relaxed)
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            watcher.abort();
        }
    }
}

/// Listens for as long as this process works, over one connection after another, to the host that the stores use.
#[cfg(feature = "postgres")]
async fn listen(database: Database, channel: &'static str, hint: Arc<Hint>) {
    let mut moves = database.moves();
    loop {
        moves.mark_unchanged();
        let url = database.url().to_owned();
        tokio::select! {
            _lost = listen_once(&url, channel, &hint) => {}
            _moved = moves.changed() => {}
        }
        hint.lost();
        sleep(Duration::from_secs(1).mul_f64(0.5 + fastrand::f64())).await;
    }
}

/// After so much silence the listener asks whether the server is still there. In an idle fleet each asks all the time, so
/// not often: beats, passes and looks of eight consumers are 1.3 transactions a second, and 1.5 is what idling may cost.
#[cfg(feature = "postgres")]
const SILENCE: Duration = Duration::from_secs(40);
/// So long it waits for the answer.
#[cfg(feature = "postgres")]
const ANSWER: Duration = Duration::from_secs(5);

#[cfg(feature = "postgres")]
async fn listen_once(url: &str, channel: &str, hint: &Hint) -> sqlx::Result<()> {
    let connect = async {
        let mut listener = sqlx::postgres::PgListener::connect(url).await?;
        // It would try for half a minute before it told that the connection is lost, and nobody would poll meanwhile.
        listener.eager_reconnect(false);
        listener.listen(channel).await?;
        Ok::<_, sqlx::Error>(listener)
    };
    let Ok(connected) = timeout(Database::LIMIT, connect).await else { return Ok(()) };
    let mut listener = connected?;
    hint.connected.store(true, Ordering::Relaxed);
    // What was committed before we listened.
    hint.notify.notify_one();
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(notified) => match notified? {
                Some(_) => hint.notify.notify_one(),
                // The connection is lost, and what was notified meanwhile with it.
                None => return Ok(()),
            },
            // Nothing was said, or a firewall forgot the connection and nobody told us.
            Err(_) => match timeout(ANSWER, ask(&mut listener)).await {
                Ok(answer) => answer?,
                Err(_) => return Ok(()),
            },
        }
    }
}

/// Unprepared: one round trip, one transaction.
#[cfg(feature = "postgres")]
async fn ask(listener: &mut sqlx::postgres::PgListener) -> sqlx::Result<()> {
    sqlx::Executor::execute(listener, sqlx::raw_sql("SELECT 1")).await?;
    Ok(())
}

/// After a write to the file, a commit is there to be seen at one of these moments, fast disk or slow: the file is written
/// first, then flushed, and only then does the commit count.
const FLUSH: [Duration; 9] = [
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(60),
    Duration::from_millis(150),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(4),
];

/// Watches the `-wal` file for as long as this process works; the file goes when the last connection closes, and comes
/// back with the next.
async fn watch(file: PathBuf, hint: Arc<Hint>) {
    let mut wal = file.into_os_string();
    wal.push("-wal");
    loop {
        let _lost = watch_once(Path::new(&wal), &hint).await;
        hint.lost();
        sleep(Duration::from_secs(1)).await;
    }
}

async fn watch_once(path: &Path, hint: &Hint) -> std::io::Result<()> {
    let inotify = Inotify::init()?;
    inotify.watches().add(path, WatchMask::MODIFY | WatchMask::DELETE_SELF | WatchMask::MOVE_SELF)?;
    let mut events = inotify.into_event_stream([0; 4096])?;
    let mut wal = Wal::open(path)?;
    hint.connected.store(true, Ordering::Relaxed);
    // What was committed before the watch stood.
    hint.notify.notify_one();
    // The next moment to hint at, and those after it.
    let mut next = Moment::now();
    let mut flush: &[Duration] = &[];
    loop {
        tokio::select! {
            event = events.next() => {
                let Some(event) = event else { return Ok(()) };
                if event?.mask.intersects(EventMask::IGNORED | EventMask::DELETE_SELF | EventMask::MOVE_SELF) {
                    return Ok(());
                }
                if wal.has_news()? {
                    let soon = Moment::now() + FLUSH[0];
                    next = if flush.is_empty() { soon } else { next.min(soon) };
                    flush = &FLUSH;
                }
            }
            () = sleep_until(next), if !flush.is_empty() => {
                hint.notify.notify_one();
                flush = &flush[1..];
                next += flush.first().copied().unwrap_or_default();
            }
        }
    }
}
