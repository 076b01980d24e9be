//! `permitq enqueue --batch`: JSON lines, checked to the last one before the first is written.
//!
//! Lines go in by transactions of some hundred. Where the database refuses one, its transaction is repeated line by
//! line, so that everything before it is in, and the line itself can be named. Where an answer got lost, only the
//! business keys make it safe to go on, and the message says so.

use std::collections::BTreeSet;
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
use crate::model::{NewTask, OnAbandon, PAYLOAD_MAX, RunAt};

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
fn parse(line: &str) -> Result<NewTask, String> {
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
        job: None,
        source: "cli".to_owned(),
    };
    task.check().map_err(|refused| refused.to_string())?;
    Ok(task)
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
fn read(mut from: impl BufRead, file: &str) -> Result<Vec<(usize, NewTask)>, Failure> {
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
            Ok(line) => match parse(line) {
                Ok(task) => tasks.push((number, task)),
                Err(reason) => problems.add(file, number, reason),
            },
        }
    }
    problems.refuse()?;
    Ok(tasks)
}

/// The tasks of a file with these bytes, or what is said of it.
pub fn fuzz(bytes: &[u8]) -> Result<Vec<(usize, NewTask)>, String> {
    read(bytes, "file").map_err(|failure| failure.words().unwrap_or_default().to_owned())
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
    for (line, task) in &tasks {
        if let Some(name) = task.semaphore.as_ref().filter(|name| !known.contains(*name)) {
            problems.add(&file, *line, format_args!("unknown semaphore {name:?}"));
        }
    }
    problems.refuse()?;

    let (lines, tasks): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
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
            let task = parse(&format!(r#"{{"kind": "a", "payload": {payload}}}"#)).unwrap();
            assert_eq!(task.payload, payload);
        }
        assert_eq!(parse(r#"{"kind": "a"}"#).unwrap().payload, "");
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
            let reason = parse(line).unwrap_err();
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
        assert!(words.ends_with("\n  f:1: unknown field `a  [2J`, expected one of `kind`, `biz_key`, `payload`, `priority`, `run_at`, `delay`, `timeout`, `max_attempts`, `semaphore`, `on_abandon` (column 15)"), "{words}");
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        let Failure::Usage(words) = read(BufReader::new(std::io::repeat(b' ')), "f").unwrap_err() else {
            panic!("usage")
        };
        assert!(words.contains("f:1: longer than"), "{words}");
    }
}
