//! Payloads: where `--payload` takes them from, and how they are shown. The text is never rewritten: going through a
//! JSON value would reorder keys and round long numbers.

use std::fs::File;
use std::io::Read;

use super::fail::Failure;
use crate::model::PAYLOAD_MAX;

/// Reads `JSON`, `@FILE` or `-`.
pub(super) fn read(argument: &str) -> Result<String, Failure> {
    let unreadable =
        |what: &str, error: std::io::Error| Failure::Usage(format!("--payload: cannot read {what}: {error}"));
    let (what, text) = match (argument, argument.strip_prefix('@')) {
        ("-", _) => {
            ("standard input", whole(std::io::stdin()).map_err(|error| unreadable("standard input", error))?)
        }
        (_, Some(file)) => {
            let text = File::open(file).and_then(whole).map_err(|error| unreadable(file, error))?;
            (file, text)
        }
        (json, None) => ("--payload", json.to_owned()),
    };
    if text.len() > PAYLOAD_MAX {
        return Err(Failure::Usage(format!(
            "{what}: the payload is over the limit of {PAYLOAD_MAX} bytes; store it elsewhere and pass a reference"
        )));
    }
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::Usage(format!("{what}: the payload is empty; leave out --payload for {{}}")));
    }
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let hint = if what == "--payload" { "; quote it for the shell: --payload '{\"a\": 1}'" } else { "" };
        return Err(Failure::Usage(format!("{what}: not JSON: {error}{hint}")));
    }
    Ok(text.to_owned())
}

/// All of it, or one byte more than a payload may have.
fn whole(from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    from.take(PAYLOAD_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// JSON text with line breaks and indents, otherwise untouched.
pub(super) fn indent(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            text.push(c);
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => {}
            '{' | '[' => {
                text.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                // An empty object or list stays on its line.
                if let Some(end) = chars.next_if(|c| matches!(c, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_string = c == '"';
                text.push(c);
            }
        }
    }
    text
}

fn line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_spaces_change() {
        let json = r#"{"b":12345678901234567890123, "a" : [1,{"x":"a:\"{,\\"}],"e":{ },"l":[]}"#;
        let shown = indent(json);
        assert_eq!(
            shown,
            r#"{
  "b": 12345678901234567890123,
  "a": [
    1,
    {
      "x": "a:\"{,\\"
    }
  ],
  "e": {},
  "l": []
}"#
        );
        assert_eq!(indent("null"), "null");
    }
}
