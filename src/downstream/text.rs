//! What a stranger sent us, made fit for a text column, a terminal and a page.

use std::fmt::Write as _;

/// The most of an error text that is kept, in bytes.
pub(super) const ERROR_MAX: usize = 2 << 10;

/// Stands for what was cut off.
const MORE: char = '…';

/// `bytes` as text of at most `max` bytes: invalid UTF-8 and control characters (but not newline and tab) become
/// U+FFFD, since databases refuse NUL and terminals obey the others; `\r\n` becomes `\n`. Text that is cut ends in `…`;
/// `more` says that the bytes were cut already.
pub(super) fn clean(bytes: &[u8], more: bool, max: usize) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    let mut text = String::with_capacity(lossy.len().min(max));
    let mut chars = lossy.chars().peekable();
    let mut cut = more;
    while let Some(char) = chars.next() {
        if char == '\r' && chars.peek() == Some(&'\n') {
            continue;
        }
        let shown = if char.is_control() && char != '\n' && char != '\t' { '\u{fffd}' } else { char };
        if text.len() + shown.len_utf8() > max {
            cut = true;
            break;
        }
        text.push(shown);
    }
    if cut && max >= MORE.len_utf8() {
        let end = text.floor_char_boundary(max - MORE.len_utf8());
        text.truncate(end);
        text.push(MORE);
    }
    text
}

/// An error with all that caused it, cleaned and cut.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    clean(text.as_bytes(), false, ERROR_MAX)
}

/// `text` fit for a header: everything but the unreserved characters of RFC 3986 as `%XX` of its UTF-8 bytes.
pub(super) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strange_text_is_made_harmless() {
        let table: [(&[u8], usize, &str); 9] = [
            (b"plain", 9, "plain"),
            (b"a\0b", 9, "a\u{fffd}b"),
            (b"line\r\nnext\ttab\n", 99, "line\nnext\ttab\n"),
            (b"lone\rreturn", 99, "lone\u{fffd}return"),
            (b"\x1b[31mred\x7f", 99, "\u{fffd}[31mred\u{fffd}"),
            ("c1 \u{85} control".as_bytes(), 99, "c1 \u{fffd} control"),
            (b"bad \xff utf-8 \xe2\x82", 99, "bad \u{fffd} utf-8 \u{fffd}"),
            ("grüße".as_bytes(), 7, "grüße"),
            ("grüße".as_bytes(), 6, "gr…"),
        ];
        for (bytes, max, expected) in table {
            assert_eq!(clean(bytes, false, max), expected, "{bytes:?}");
        }
        assert_eq!(clean(b"cut before", true, 99), "cut before…");
    }

    #[test]
    fn keys_become_header_safe() {
        assert_eq!(percent_encode("DAILY_REPORT:2026-11"), "DAILY_REPORT%3A2026-11");
        assert_eq!(percent_encode("ö x%"), "%C3%B6%20x%25");
    }

    proptest! {
        #[test]
        fn cleaned_text_keeps_its_bound(bytes: Vec<u8>, more: bool, max in 0usize..64) {
            let text = clean(&bytes, more, max);
            prop_assert!(text.len() <= max);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        }
    }
}
