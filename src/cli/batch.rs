//! `permitq enqueue --batch`: JSON lines, checked to the last one before the first is written.
//!
//! Lines go in by transactions of some hundred. Where the database refuses one, its transaction is repeated line by
//! line, so that everything before it is in, and the line itself can be named. Where an answer got lost, only the
//! business keys make it safe to go on, and the message says so.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::fail::Failure;
use super::out::Out;
use super::progress::{Batch, Stopped};
use super::{Global, place, when};
use crate::config::HumanDuration;
use crate::model::{After, NewTask, OnAbandon, PAYLOAD_MAX, Parent, RunAt, order};
use crate::store::Store;

/// So many bad lines are shown; the rest is counted.
const SHOWN: usize = 20;
/// A line longer than this holds no payload that would be taken.
const LINE_MAX: usize = 2 * PAYLOAD_MAX;

/// One line, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    kind: String,
    biz_key: Option<String>,
    #[serde(borrow, default, deserialize_with = "raw")]
    payload: Option<&'a RawValue>,
    #[serde(default)]
    priority: i32,
    #[serde(default, deserialize_with = "instant")]
    run_at: Option<Timestamp>,
    delay: Option<HumanDuration>,
    #[serde(default, deserialize_with = "expires")]
    expires: Option<RunAt>,
    timeout: Option<HumanDuration>,
    max_attempts: Option<u32>,
    semaphore: Option<String>,
    #[serde(default, deserialize_with = "policy")]
    on_abandon: Option<OnAbandon>,
    name: Option<String>,
    #[serde(default)]
    after: Vec<Reference>,
}

/// What a line waits for: a name of this file, a business key, or an id.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(super) enum Reference {
    Id(i64),
    Name(String),
    Any { any_end: Box<Reference> },
}

impl Reference {
    fn target(&self) -> (&Self, bool) {
        match self {
            Self::Any { any_end } => (any_end.target().0, true),
            other => (other, false),
        }
    }
}

/// A line, and what it is called and waits for in this file.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) line: usize,
    pub(super) task: NewTask,
    pub(super) name: Option<String>,
    after: Vec<Reference>,
}

/// `null` is a payload, too.
fn raw<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    text.map(|text| when::parse(&text).map_err(D::Error::custom)).transpose()
}

/// An instant, a span as text, or seconds from now on.
fn expires<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RunAt>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Seconds(HumanDuration),
    }
    match Deserialize::deserialize(from)? {
        None => Ok(None),
        Some(Either::Text(text)) => when::at_or_in(&text).map(Some).map_err(D::Error::custom),
        Some(Either::Seconds(span)) => Ok(Some(RunAt::In(span.0))),
    }
}

fn policy<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OnAbandon>, D::Error> {
    let text: Option<String> = Deserialize::deserialize(from)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

/// The task of one line, or what is wrong with it.
fn parse(number: usize, line: &str) -> Result<Parsed, String> {
    let from = &mut serde_json::Deserializer::from_str(line);
    let line: Line<'_> = serde_path_to_error::deserialize(&mut *from).map_err(|error| {
        let field = error.path().to_string();
        let error = error.into_inner();
        // The line number is the file's, not the parser's, which sees one line at a time.
        let words = error.to_string();
        let words = words.rsplit_once(" at line ").map_or(&*words, |(words, _)| words);
        let field = if field == "." || words.contains(&format!("`{field}`")) {
            String::new()
        } else {
            format!("{field}: ")
        };
        format!("{field}{words} (column {})", error.column())
    })?;
    from.end().map_err(|error| format!("more than one JSON value (column {})", error.column()))?;
    let run_at = match (line.run_at, line.delay) {
        (Some(_), Some(_)) => return Err("run_at and delay exclude each other".to_owned()),
        (Some(at), None) => RunAt::At(at),
        (None, Some(delay)) => RunAt::In(delay.0),
        (None, None) => RunAt::Now,
    };
    let task = NewTask {
        kind: line.kind,
        biz_key: line.biz_key,
        payload: line.payload.map(RawValue::get).unwrap_or_default().to_owned(),
        priority: line.priority,
        run_at,
        timeout: line.timeout.map(|timeout| timeout.0),
        max_attempts: line.max_attempts,
        on_abandon: line.on_abandon,
        semaphore: line.semaphore,
        expires: line.expires,
        after: Vec::new(),
        job: None,
        source: "cli".to_owned(),
    };
    task.check().map_err(|refused| refused.to_string())?;
    Ok(Parsed { line: number, task, name: line.name, after: line.after })
}

/// What is wrong with a file, line by line.
#[derive(Debug, Default)]
struct Problems {
    shown: Vec<String>,
    count: usize,
}

impl Problems {
    fn add(&mut self, file: &str, line: usize, reason: impl fmt::Display) {
        self.count += 1;
        if self.shown.len() < SHOWN {
            // A field's name may have been anything, a line break included.
            let reason = reason.to_string().replace(char::is_control, " ");
            self.shown.push(format!("\n  {file}:{line}: {reason}"));
        }
    }

    fn refuse(&self) -> Result<(), Failure> {
        let lines = match self.count {
            0 => return Ok(()),
            1 => "1 bad line".to_owned(),
            n => format!("{n} bad lines"),
        };
        let more = match self.count - self.shown.len() {
            0 => String::new(),
            n => format!("\n  and {n} more"),
        };
        Err(Failure::Usage(format!("{lines}, nothing was enqueued:{}{more}", self.shown.concat())))
    }
}

/// Reads and checks every line; blank ones are skipped.
fn read(mut from: impl BufRead, file: &str) -> Result<Vec<Parsed>, Failure> {
    let (mut tasks, mut problems, mut line) = (Vec::new(), Problems::default(), Vec::new());
    for number in 1.. {
        line.clear();
        let read = from.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line);
        let read = read.map_err(|error| Failure::Usage(format!("cannot read {file}: {error}")))?;
        if read == 0 {
            break;
        }
        if read == LINE_MAX {
            problems.add(file, number, format_args!("longer than {LINE_MAX} bytes; the rest was not read"));
            break;
        }
        match std::str::from_utf8(&line).map(|line| line.trim_start_matches('\u{feff}').trim()) {
            Err(_) => problems.add(file, number, "not UTF-8"),
            Ok("") => {}
            Ok(line) => match parse(number, line) {
                Ok(task) => tasks.push(task),
                Err(reason) => problems.add(file, number, reason),
            },
        }
    }
    problems.refuse()?;
    arrange(tasks, file)
}

/// In an order in which each stands behind those it waits for, their names made indices; the file's own order where that is
/// one.
fn arrange(lines: Vec<Parsed>, file: &str) -> Result<Vec<Parsed>, Failure> {
    if lines.iter().all(|line| line.after.is_empty() && line.name.is_none()) {
        return Ok(lines);
    }
    let mut problems = Problems::default();
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (n, line) in lines.iter().enumerate() {
        if let Some(name) = &line.name
            && let Some(first) = names.insert(name, n)
        {
            let first = lines[first].line;
            problems.add(file, line.line, format_args!("the name {name:?} is line {first}'s already"));
        }
    }
    for (n, line) in lines.iter().enumerate() {
        if let Some(key) = &line.task.biz_key {
            names.entry(key).or_insert(n);
        }
    }
    let inside = |reference: &Reference| match reference.target().0 {
        Reference::Name(name) => names.get(&**name).copied(),
        _ => None,
    };
    let parents: Vec<Vec<usize>> =
        lines.iter().map(|line| line.after.iter().filter_map(inside).collect()).collect();
    let order = order(&parents).unwrap_or_else(|cycle| {
        let words = |n: &usize| {
            let Parsed { line, name, task, .. } = &lines[*n];
            let called = name.as_ref().or(task.biz_key.as_ref());
            format!("{:?} (line {line})", called.map_or("", |name| name))
        };
        let round: Vec<_> = cycle.iter().chain(cycle.first()).map(words).collect();
        let first = cycle.first().map_or(0, |n| lines[*n].line);
        problems.add(file, first, format_args!("a cycle: {}", round.join(" waits for ")));
        Vec::new()
    });
    problems.refuse()?;
    let mut place = vec![0; lines.len()];
    for (new, old) in order.iter().enumerate() {
        place[*old] = new;
    }
    let afters: Vec<Vec<After>> = lines
        .iter()
        .map(|line| {
            let after = |reference: &Reference| {
                let (target, any_end) = reference.target();
                let parent = match (inside(reference), target) {
                    (Some(n), _) => Parent::Nth(place[n]),
                    (None, Reference::Id(id)) => Parent::Task(*id),
                    (None, Reference::Name(key)) => Parent::Key(key.clone()),
                    (None, Reference::Any { .. }) => return None,
                };
                Some(After { parent, any_end })
            };
            line.after.iter().filter_map(after).collect()
        })
        .collect();
    let mut sorted: Vec<_> = place.into_iter().zip(lines.into_iter().zip(afters)).collect();
    sorted.sort_unstable_by_key(|(place, _)| *place);
    let arranged =
        |(_, (line, after)): (_, (Parsed, _))| Parsed { task: NewTask { after, ..line.task }, ..line };
    Ok(sorted.into_iter().map(arranged).collect())
}

/// The tasks of a file with these bytes, or what is said of it.
pub fn fuzz(bytes: &[u8]) -> Result<Vec<(usize, NewTask)>, String> {
    let read =
        read(bytes, "file").map(|lines| lines.into_iter().map(|line| (line.line, line.task)).collect());
    read.map_err(|failure| failure.words().unwrap_or_default().to_owned())
}

/// What lines wait for that is in the database already.
#[derive(Default)]
struct Known {
    ids: BTreeSet<i64>,
    keys: BTreeSet<String>,
}

impl Known {
    async fn read(lines: &[Parsed], store: &mut Store) -> Result<Self, Failure> {
        let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for after in lines.iter().flat_map(|line| &line.task.after) {
            match &after.parent {
                Parent::Task(id) => drop(ids.insert(*id)),
                Parent::Key(key) => drop(keys.insert(key.clone())),
                Parent::Nth(_) => {}
            }
        }
        let (ids, keys) =
            store.known(&ids.into_iter().collect::<Vec<_>>(), &keys.into_iter().collect::<Vec<_>>()).await?;
        Ok(Self { ids: ids.into_iter().collect(), keys: keys.into_iter().collect() })
    }

    fn has(&self, parent: &Parent) -> bool {
        match parent {
            Parent::Task(id) => self.ids.contains(id),
            Parent::Key(key) => self.keys.contains(key),
            Parent::Nth(_) => true,
        }
    }
}

pub(super) async fn run(path: &Path, global: &Global, out: &Out) -> Result<(), Failure> {
    let (file, tasks) = if path == Path::new("-") {
        ("<stdin>".to_owned(), read(std::io::stdin().lock(), "<stdin>")?)
    } else {
        let file = path.display().to_string();
        let opened = File::open(path)
            .map_err(|error| Failure::Usage(format!("--batch: cannot read {file}: {error}")))?;
        let tasks = read(BufReader::new(opened), &file)?;
        (file, tasks)
    };
    let mut store = place::open_or_create(global).await?;
    let known: BTreeSet<String> = store.semaphores().await?.into_iter().map(|s| s.name).collect();
    let mut problems = Problems::default();
    let parents = Known::read(&tasks, &mut store).await?;
    for Parsed { line, task, .. } in &tasks {
        if let Some(name) = task.semaphore.as_ref().filter(|name| !known.contains(*name)) {
            problems.add(&file, *line, format_args!("unknown semaphore {name:?}"));
        }
        for parent in task.after.iter().map(|after| &after.parent).filter(|parent| !parents.has(parent)) {
            match parent {
                Parent::Task(id) => problems.add(&file, *line, format_args!("after: there is no task {id}")),
                Parent::Key(name) => problems.add(
                    &file,
                    *line,
                    format_args!(
                        "after: {name:?} is no name in this file, and no task has it as its business key"
                    ),
                ),
                Parent::Nth(_) => {}
            }
        }
    }
    problems.refuse()?;

    let (lines, tasks): (Vec<_>, Vec<_>) = tasks.into_iter().map(|parsed| (parsed.line, parsed.task)).unzip();
    let (done, stopped) = Batch { lines: &lines, tasks: &tasks }.enqueue(&mut store).await;
    let failed = tasks.len() - done.lines();
    let counts = json!({"created": done.created, "existing": done.existing, "failed": failed});
    out.answer(&counts, || format!("{} created, {} already there", done.created, done.existing))?;
    match stopped {
        None => Ok(()),
        Some(Stopped { error, unknown }) => {
            let batch = Batch { lines: &lines, tasks: &tasks };
            Err(Failure::Failed(batch.stopped(&file, done, unknown, &error.to_string())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_keeps_its_text() {
        for payload in ["null", "1.10", r#"{"b": 1, "a": 12345678901234567890123}"#, r#""x""#, "[]"] {
            let task = parse(1, &format!(r#"{{"kind": "a", "payload": {payload}}}"#)).unwrap().task;
            assert_eq!(task.payload, payload);
        }
        assert_eq!(parse(1, r#"{"kind": "a"}"#).unwrap().task.payload, "");
    }

    #[test]
    fn a_bad_line_says_which_field_and_why() {
        for (line, words) in [
            (r#"{"kind": "a", "prio": 1}"#, "unknown field `prio`, expected one of `kind`, `biz_key`"),
            (r#"{"key": "a"}"#, "unknown field `key`"),
            (r"{}", "missing field `kind`"),
            (r"[1]", "invalid type"),
            (r#"{"kind": "a"} {"kind": "b"}"#, "more than one JSON value (column 15)"),
            (r#"{"kind": "a""#, "EOF while parsing an object (column 12)"),
            (r#"{"kind": "a", "kind": "b"}"#, "duplicate field `kind`"),
            (r#"{"kind": "a", "delay": "5M"}"#, "delay: 5M means 5 months; write 5m"),
            (r#"{"kind": "a", "timeout": -1}"#, "timeout: -1 seconds"),
            (r#"{"kind": "a", "timeout": 0}"#, "timeout must be more than 0"),
            (r#"{"kind": "a", "run_at": "soon"}"#, "run_at: \"soon\" is no instant"),
            (r#"{"kind": "a", "run_at": "2026-12-01T09:00:00Z", "delay": 1}"#, "exclude each other"),
            (r#"{"kind": "a", "on_abandon": "give_up"}"#, "on_abandon: unknown on_abandon \"give_up\""),
            (r#"{"kind": "a", "priority": 99999999999}"#, "priority: invalid value"),
            (r#"{"kind": "a", "max_attempts": 0}"#, "max_attempts must be from 1"),
            (r#"{"kind": "", "biz_key": "k"}"#, "kind \"\" must have 1 to 100 characters"),
        ] {
            let reason = parse(1, line).unwrap_err();
            assert!(reason.contains(words), "{line}: {reason}");
            assert!(!reason.contains("line 1"), "{line}: {reason}");
        }
    }

    #[test]
    fn every_bad_line_is_counted_and_the_first_twenty_are_shown() {
        let text = "\u{feff}{\"kind\":\"a\"}\r\n\n".to_owned() + &"{\n".repeat(25);
        let Failure::Usage(words) = read(text.as_bytes(), "f").unwrap_err() else { panic!("usage") };
        assert!(words.starts_with("25 bad lines, nothing was enqueued:\n  f:3: "), "{words}");
        assert!(words.contains("f:22: ") && !words.contains("f:23: "), "{words}");
        assert!(words.ends_with("\n  and 5 more"), "{words}");
    }

    #[test]
    fn a_bad_line_is_told_on_one_line() {
        let Failure::Usage(words) = read(&br#"{"a\n\u001b[2J": 1}"#[..], "f").unwrap_err() else {
            panic!("usage")
        };
        assert!(words.ends_with("\n  f:1: unknown field `a  [2J`, expected one of `kind`, `biz_key`, `payload`, `priority`, `run_at`, `delay`, `expires`, `timeout`, `max_attempts`, `semaphore`, `on_abandon`, `name`, `after` (column 15)"), "{words}");
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        let Failure::Usage(words) = read(BufReader::new(std::io::repeat(b' ')), "f").unwrap_err() else {
            panic!("usage")
        };
        assert!(words.contains("f:1: longer than"), "{words}");
    }
}
