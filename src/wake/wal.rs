//! What was just committed, as the `-wal` file tells: without a connection, a transaction or a lock.
//!
//! ```text
//!  header, 32 bytes    page size at 8, salts at 16
//!  frame, 24 bytes     page number, size after commit at 4 (not 0: the last frame of a commit), the header's salts at 8,
//!    + one page        checksum of all before it
//!  frame …             with other salts: left over from before the file was last started anew
//! ```
//!
//! A heartbeat changes one page, the one with its consumer's row. Whatever makes work available changes at least two, a
//! table's and an index's: a new or promoted task, a raised cap, an ended cooling, a retry. So an idle fleet sleeps through
//! its own beats, and a wide consumer row that needs more than its page costs a look too many, no more.
//!
//! Frames are written before they are committed. Where the writer dies in between, the next one writes over them from the
//! first on; so the first frame of the last commit seen is remembered, and read again each time.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER: usize = 32;
const FRAME: usize = 24;

type Frame = [u8; FRAME];

/// A place in the file, up to which all commits are known.
#[derive(Debug)]
pub(super) struct Wal {
    file: File,
    salts: [u8; 8],
    page_size: u64,
    /// Frames seen.
    seen: u64,
    /// Where the last commit begins, finished or not, and that frame.
    last: Option<(u64, Frame)>,
    /// Whether that commit is not finished yet.
    unfinished: bool,
}

impl Wal {
    /// At the end of what is there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut wal = Self { file, salts: [0; 8], page_size: 0, seen: 0, last: None, unfinished: false };
        wal.has_news()?;
        Ok(wal)
    }

    /// Whether a commit of more than one page was written since the last call.
    pub(super) fn has_news(&mut self) -> io::Result<bool> {
        let Some(header) = self.read::<HEADER>(0)? else { return Ok(false) };
        if header[16..24] != self.salts {
            self.salts.copy_from_slice(&header[16..24]);
            let size = header[8..12].iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
            self.page_size = size;
            self.seen = 0;
            self.last = None;
            self.unfinished = false;
        }
        if let Some((at, frame)) = self.last
            && self.frame(at)? != Some(frame)
        {
            self.seen = at;
            self.unfinished = false;
        }
        let mut news = false;
        while let Some(frame) = self.frame(self.seen)? {
            let (first, last) = (!self.unfinished, frame[4..8] != [0; 4]);
            if first {
                self.last = Some((self.seen, frame));
            }
            news |= last && !first;
            self.unfinished = !last;
            self.seen += 1;
        }
        Ok(news)
    }

    /// A frame's header; `None` where there is none yet.
    fn frame(&self, at: u64) -> io::Result<Option<Frame>> {
        let frame = self.read(HEADER as u64 + at * (FRAME as u64 + self.page_size))?;
        Ok(frame.filter(|frame: &Frame| frame[8..16] == self.salts))
    }

    fn read<const N: usize>(&self, at: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::{Connection, Executor, SqliteConnection};

    use super::*;
    use crate::model::{NewTask, RunAt};
    use crate::store::{Database, Left, Registration};

    const LEASE: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn beats_are_no_news_and_work_is() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("queue.db");
        let database = Database::new(&format!("sqlite://{}", file.display())).unwrap().create();
        let mut store = database.store();
        store.migrate().await.unwrap();
        for n in 0..8 {
            store
                .register(&Registration {
                    id: format!("host-{n}"),
                    name: "host".to_owned(),
                    host: "host".to_owned(),
                    pid: n,
                    slots: 4,
                    serves: r#"{"*": "default"}"#.to_owned(),
                    lease: LEASE,
                })
                .await
                .unwrap();
        }
        let mut wal = Wal::open(&folder.path().join("queue.db-wal")).unwrap();
        let mut hand = SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();

        for _ in 0..2 {
            for n in 0..8 {
                store.beat(&format!("host-{n}"), LEASE).await.unwrap();
                assert!(!wal.has_news().unwrap(), "a beat");
            }
            let later = NewTask { run_at: RunAt::In(LEASE), ..NewTask::new("call", "{}") };
            for task in [NewTask::new("call", "{}"), later] {
                store.enqueue(&[task]).await.unwrap();
                assert!(wal.has_news().unwrap(), "a task");
                assert!(!wal.has_news().unwrap(), "nothing since");
            }
            for work in [
                "UPDATE permitq_semaphore SET max_permits = max_permits + 1",
                "INSERT INTO permitq_task (kind) VALUES ('call')",
                "UPDATE permitq_task SET run_at = 0 WHERE state = 'scheduled'",
                "UPDATE permitq_task SET state = 'pending' WHERE state = 'scheduled'",
            ] {
                hand.execute(work).await.unwrap();
                store.beat("host-1", LEASE).await.unwrap();
                assert!(wal.has_news().unwrap(), "{work}");
            }
            store.leave("host-1", Left::Draining).await.unwrap();
            assert!(!wal.has_news().unwrap(), "nothing to claim");
            // The file starts anew, at its full length and then at none.
            hand.execute("PRAGMA wal_checkpoint(RESTART)").await.unwrap();
            store.beat("host-2", LEASE).await.unwrap();
            assert!(!wal.has_news().unwrap(), "a beat into a restarted file");
            hand.execute("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
            assert!(!wal.has_news().unwrap(), "an empty file");
        }
    }

    /// A writer that dies before its commit counts leaves frames behind.
    #[tokio::test]
    async fn what_is_written_over_is_read_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("queue.db");
        let database = Database::new(&format!("sqlite://{}", file.display())).unwrap().create();
        let mut store = database.store();
        store.migrate().await.unwrap();
        let path = folder.path().join("queue.db-wal");
        let mut wal = Wal::open(&path).unwrap();
        let end = std::fs::metadata(&path).unwrap().len();
        store.enqueue(&[NewTask::new("call", "{}")]).await.unwrap();
        assert!(wal.has_news().unwrap());
        // The same frames again, with other checksums: another commit in the place of a longer one.
        let dead = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for n in 0..2 {
            let at = end + n * (FRAME as u64 + wal.page_size);
            let [page, size] = if n == 0 { [9_u32, 0] } else { [3, 7] };
            dead.write_all_at(&[page.to_be_bytes(), size.to_be_bytes()].concat(), at).unwrap();
        }
        assert!(wal.has_news().unwrap(), "other frames in the same place");
    }
}
