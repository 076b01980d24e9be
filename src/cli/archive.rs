//! Where pruned tasks are kept: JSON lines, compressed. Each batch is a gzip stream of its own, whole and on the disk before
//! the batch is deleted; `zcat` reads them one after the other. A crash in between leaves tasks that are archived and still
//! there, and the next run archives them again, into another file: twice at most, never lost.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::shape::TaskShape;
use crate::model::Task;
use crate::store::{Action, AttemptLog, Error, Store};

/// A file that did not exist before.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) path: PathBuf,
    file: File,
}

impl Archive {
    /// Creates the file, or one with a name of its own in the folder.
    pub(super) fn create(place: &Path, now: Timestamp) -> io::Result<Self> {
        let path = if place.is_dir() {
            let unique = fastrand::u32(..);
            place.join(format!("permitq-{}-{unique:08x}.jsonl.gz", now.strftime("%Y%m%dT%H%M%SZ")))
        } else {
            place.to_owned()
        };
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        // The name has to survive, too.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(Self { path, file })
    }

    /// Writes these lines down for good.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut stream = GzEncoder::new(Vec::new(), Compression::default());
        stream.write_all(lines)?;
        self.file.write_all(&stream.finish()?)?;
        self.file.sync_data()
    }
}

/// Everything that is known of a task.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    task: TaskShape<'a>,
    payload: Option<&'a RawValue>,
    result: Option<&'a str>,
    attempts: &'a [AttemptLog],
    actions: &'a [Action],
}

/// One line for each of these tasks that is there.
pub(super) async fn lines(store: &mut Store, tasks: &[i64]) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    for &id in tasks {
        let Some(task) = store.task(id).await? else { continue };
        let (attempts, actions) = (store.attempts(id).await?, store.actions(id).await?);
        lines.extend(line(&task, &attempts, &actions));
    }
    Ok(lines)
}

fn line(task: &Task, attempts: &[AttemptLog], actions: &[Action]) -> Vec<u8> {
    // A payload may have been written over several lines.
    let payload = task.payload.as_ref().map(|payload| payload.replace(['\n', '\r'], " "));
    let payload = payload.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let line =
        Line { task: TaskShape::from(task), payload, result: task.result.as_deref(), attempts, actions };
    // It has no map whose keys are not texts, so it can always be written.
    let mut line = serde_json::to_vec(&line).unwrap_or_default();
    line.push(b'\n');
    line
}
