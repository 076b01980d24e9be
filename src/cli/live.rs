//! Progress on long work, on standard error: a bar where somebody watches, a plain line now and then elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::out::Out;

/// Shows how far something has come.
pub(super) struct Live {
    bar: Option<ProgressBar>,
    out: Out,
    total: u64,
    shown: Option<(u64, Instant)>,
}

/// Between two plain lines.
const EVERY: Duration = Duration::from_secs(2);

impl Live {
    pub(super) fn new(total: u64, out: &Out) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  {elapsed}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, out: out.clone(), total, shown: None }
    }

    /// So many are done.
    pub(super) fn show(&mut self, done: u64, note: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(note.to_owned());
            return;
        }
        let news = self.shown.is_none_or(|(last, at)| (last != done || done == 0) && at.elapsed() >= EVERY);
        if news {
            self.shown = Some((done, Instant::now()));
            self.out.note(&format!("{done} of {} done, {note}", self.total));
        }
    }

    /// Something happened that is worth a line.
    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => self.out.note(text),
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
