//! Everything that a command prints. Data goes to standard output, messages to standard error; `anstream` takes the
//! colours out where nobody sees them (a pipe, `NO_COLOR`).

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use serde::Serialize;

use crate::store::mask_all;

const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();

/// Where a command prints.
#[derive(Clone, Debug)]
pub(super) struct Out {
    /// JSON was asked for.
    json: bool,
}

impl Out {
    /// Prints text, or JSON.
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints an answer: the value as one line of JSON, or the text that `human` makes.
    pub(super) fn answer(&self, value: &impl Serialize, human: impl FnOnce() -> String) -> io::Result<()> {
        if self.json { self.data(&plain_json(&serde_json::to_string(value)?)) } else { self.data(&human()) }
    }

    /// Prints data, ending its last line; nothing where there is none.
    #[expect(clippy::unused_self, reason = "one way out for everything that is printed")]
    pub(super) fn data(&self, text: &str) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }

    /// Says something that is not data.
    pub(super) fn note(&self, text: &str) {
        self.message(&clean(text));
    }

    /// Says what went wrong.
    pub(super) fn error(&self, text: &str) {
        self.message(&format!("{RED}error:{RED:#} {}", clean(text)));
    }

    /// Nothing can be done where even standard error takes nothing.
    #[expect(clippy::unused_self, reason = "one way out for everything that is printed")]
    fn message(&self, text: &str) {
        drop(writeln!(anstream::stderr(), "{text}"));
    }
}

/// Prints help, or what is wrong with the command line: an argument in the wrong place may be a URL with a password.
pub(super) fn usage(text: &str, wrong: bool) -> io::Result<()> {
    let text = mask_all(text);
    if wrong {
        anstream::stderr().write_all(text.as_bytes())
    } else {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }
}

/// Columns without borders: on a terminal as wide as it is, elsewhere one line per row, for `grep`.
pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    // One line stays one line, whatever a hand at the table has put into a name.
    let rows: Vec<_> = rows.into_iter().map(|row| row.map(|cell| cell.replace(['\n', '\t'], " "))).collect();
    let text = columns(Some(header), &rows);
    match text.split_once('\n') {
        Some((header, rows)) => format!("{BOLD}{header}{BOLD:#}\n{rows}"),
        None => text,
    }
}

/// Names and what they stand for, one below the other.
pub(super) fn list(rows: &[[String; 2]]) -> String {
    columns(None, rows)
}

fn columns<const N: usize>(header: Option<[&str; N]>, rows: &[[String; N]]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    if let Some(header) = header {
        table.set_header(header.to_vec());
    }
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for row in rows {
        table.add_row(row.each_ref().map(|cell| clean(cell)).to_vec());
    }
    // What no row has would only take room from what some have.
    let empty: Vec<_> = (0..N).map(|n| rows.iter().all(|row| row[n].is_empty())).collect();
    for (column, empty) in table.column_iter_mut().zip(empty) {
        column.set_padding((0, 2));
        if empty {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    table.trim_fmt()
}

fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { 100 } else { columns })
}

/// Text under a heading.
pub(super) fn section(heading: &str, text: &str) -> String {
    format!("{BOLD}{heading}{BOLD:#}\n{text}")
}

/// Text from elsewhere, without what would steer a terminal, or show the text in another order than it has.
pub(super) fn clean(text: &str) -> String {
    let harmless = |c: char| !steers(c) || matches!(c, '\n' | '\t');
    if text.chars().all(harmless) {
        return text.to_owned();
    }
    text.chars().map(|c| if harmless(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// JSON on one line, and of the same meaning, that steers no terminal either. Beside its texts it has no such character
/// but the line breaks of a payload that was written over several lines.
fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' | '\r' | '\t' => plain.push(' '),
            // Writing to a String cannot fail.
            c if steers(c) => {
                let _ = write!(plain, "\\u{:04x}", u32::from(c));
            }
            c => plain.push(c),
        }
    }
    plain
}

/// Control characters, and those that turn the direction of the text after them.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text as it reaches a terminal, and as JSON.
pub fn fuzz(text: &str) -> (String, String) {
    (clean(text), plain_json(&serde_json::Value::from(text).to_string()))
}

/// At most so many characters of the first line.
pub(super) fn brief(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= most && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\r\n"), "a\\u{1b}[2Jb\\u{d}\n");
        assert_eq!(clean("größer 😀"), "größer 😀");
        assert_eq!(clean("a\u{202e}b\u{9b}2J"), "a\\u{202e}b\\u{9b}2J");
        let json = "{\n\t\"a\": \"\u{9b}2J\u{7f}\u{2066}ö\"}";
        let plain = plain_json(json);
        assert_eq!(plain, "{  \"a\": \"\\u009b2J\\u007f\\u2066ö\"}");
        let read = |json| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(read(&plain), read(json));
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(brief("short", 10), "short");
        assert_eq!(brief("a longer text", 8), "a longe…");
        assert_eq!(brief("two\nlines", 8), "two…");
    }

    #[test]
    fn columns_line_up_without_borders_and_without_empty_ones() {
        let rows = [["1", "", "report"], ["20", "", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(Some(["id", "key", "kind"]), &rows), "id  kind\n1   report\n20  x");
    }
}
