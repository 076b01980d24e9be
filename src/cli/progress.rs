//! Writing a checked batch: some hundred lines per transaction, a bar where somebody watches, and an exact account of
//! what is in the table when it stops halfway.

use indicatif::{ProgressBar, ProgressStyle};

use crate::model::{After, NewTask, Parent};
use crate::store::{Error, Store};

/// A transaction takes so many lines at most,
const LINES: usize = 500;
/// and so many bytes of payload, unless one line alone has more.
const BYTES: usize = 1 << 20;

/// The tasks of a file, in its order, and the line of each.
pub(super) struct Batch<'a> {
    pub(super) lines: &'a [usize],
    pub(super) tasks: &'a [NewTask],
}

/// What has been committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) created: usize,
    pub(super) existing: usize,
}

impl Done {
    /// Lines that are in the table.
    pub(super) fn lines(self) -> usize {
        self.created + self.existing
    }
}

/// Why it did not come to its end.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) error: Error,
    /// So many lines after the committed ones may be in the table or not.
    pub(super) unknown: usize,
}

impl Batch<'_> {
    /// Enqueues the tasks in order, up to the first that cannot be.
    pub(super) async fn enqueue(&self, store: &mut Store) -> (Done, Option<Stopped>) {
        let bar = bar(self.tasks.len());
        let mut done = Done::default();
        // So many of the next lines go one by one, since one of them was refused: those before it get in, and the line
        // is known.
        let mut singly = 0_usize;
        let mut ids = Vec::with_capacity(self.tasks.len());
        while done.lines() < self.tasks.len() {
            let rest = &self.tasks[done.lines()..];
            let part = &rest[..if singly > 0 { 1 } else { part(rest) }];
            let linked = link(part, done.lines(), &ids);
            match store.enqueue(linked.as_deref().unwrap_or(part)).await {
                Ok(enqueued) => {
                    ids.extend(enqueued.iter().map(|enqueued| enqueued.id));
                    let created = enqueued.iter().filter(|enqueued| enqueued.created).count();
                    done.created += created;
                    done.existing += part.len() - created;
                    singly = singly.saturating_sub(1);
                    bar.set_position(done.lines() as u64);
                }
                Err(Error::Refused { .. }) if part.len() > 1 => singly = part.len(),
                Err(error) => {
                    bar.abandon();
                    let unknown = if error.is_unknown() { part.len() } else { 0 };
                    return (done, Some(Stopped { error, unknown }));
                }
            }
        }
        bar.finish_and_clear();
        (done, None)
    }

    /// What is in the table, what may be, and how to go on.
    pub(super) fn stopped(&self, file: &str, done: Done, unknown: usize, error: &str) -> String {
        let done = done.lines();
        let line = |index: usize| self.lines.get(index).copied().unwrap_or_default();
        let next = line(done);
        let rest = if file == "<stdin>" {
            format!("repeat the input from line {next} on")
        } else {
            format!("go on with: tail -n +{next} {file} | permitq enqueue --batch -")
        };
        let committed = match done {
            0 => "no line is committed".to_owned(),
            1 => format!("1 line is committed, line {}", line(0)),
            n => format!("{n} lines are committed, up to line {}", line(n - 1)),
        };
        let mut text = vec![format!("{file}:{next}: {error}"), committed];
        if unknown == 0 {
            text.push(format!("mend what it says, then {rest}"));
            return text.join("\n  ");
        }
        let open = &self.tasks[done..done + unknown];
        text.push(format!("lines {next} to {} may be in the table or not", line(done + unknown - 1)));
        text.push(match open.iter().filter(|task| task.biz_key.is_none()).count() {
            0 => format!("all of them have a biz_key, so repeating them is safe; {rest}"),
            n => format!(
                "{n} of them have no biz_key and would be enqueued twice: look with `permitq tasks` which are there, \
                 then {rest}"
            ),
        });
        text.join("\n  ")
    }
}

/// The tasks of this part, which begins at `start`: what they wait for is an id, or stands in the part. `None`: they wait for
/// nothing of this file.
fn link(part: &[NewTask], start: usize, ids: &[i64]) -> Option<Vec<NewTask>> {
    let inside = |after: &After| matches!(after.parent, Parent::Nth(_));
    if !part.iter().any(|task| task.after.iter().any(inside)) {
        return None;
    }
    let mut part = part.to_vec();
    for after in part.iter_mut().flat_map(|task| &mut task.after) {
        if let Parent::Nth(n) = after.parent {
            after.parent = ids.get(n).map_or(Parent::Nth(n.saturating_sub(start)), |id| Parent::Task(*id));
        }
    }
    Some(part)
}

/// How many of these tasks make the next transaction; at least one.
fn part(rest: &[NewTask]) -> usize {
    let mut bytes = 0;
    let fits = |task: &&NewTask| {
        bytes += task.payload.len();
        bytes <= BYTES
    };
    rest.iter().take(LINES).take_while(fits).count().max(1)
}

/// On standard error, and only where that is a terminal.
fn bar(length: usize) -> ProgressBar {
    let bar = ProgressBar::new(length as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} lines, {eta} left") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_bounded_by_lines_and_by_bytes() {
        assert_eq!(part(&vec![NewTask::new("a", ""); 1_200]), LINES);
        assert_eq!(part(&vec![NewTask::new("a", "x".repeat(BYTES / 4)); 10]), 4);
        assert_eq!(part(&vec![NewTask::new("a", "x".repeat(BYTES * 2)); 10]), 1);
    }

    #[test]
    fn a_stop_says_what_is_in_the_table_and_how_to_go_on() {
        let keyed: Vec<_> = (0..4).map(|n| NewTask::new("a", "").key(n.to_string())).collect();
        let done = Done { created: 1, existing: 1 };
        let batch = Batch { lines: &[1, 2, 4, 5], tasks: &keyed };
        assert_eq!(
            batch.stopped("f", done, 0, "refused"),
            "f:4: refused\n  2 lines are committed, up to line 2\n  mend what it says, then go on with: \
             tail -n +4 f | permitq enqueue --batch -"
        );
        let unknown = batch.stopped("f", done, 2, "no answer");
        assert!(unknown.contains("lines 4 to 5 may be in the table or not"), "{unknown}");
        assert!(unknown.contains("repeating them is safe"), "{unknown}");

        let plain = vec![NewTask::new("a", ""); 4];
        let batch = Batch { lines: &[1, 2, 4, 5], tasks: &plain };
        let unknown = batch.stopped("<stdin>", Done::default(), 4, "no answer");
        assert!(unknown.contains("no line is committed"), "{unknown}");
        assert!(unknown.contains("4 of them have no biz_key and would be enqueued twice"), "{unknown}");
        assert!(unknown.ends_with("repeat the input from line 1 on"), "{unknown}");
    }
}
