//! What a downstream was told in confidence and must not come back with its answer.

use super::text::percent_encode;

/// Shorter texts are found where they mean something else.
const SHORTEST: usize = 8;
const MASK: &[u8] = b"***";

/// Secrets, as they stand and as an answer may write them. Never shown.
pub(super) struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    pub(super) fn new(texts: &[String]) -> Self {
        let mut all: Vec<Vec<u8>> = texts
            .iter()
            .filter(|text| text.len() >= SHORTEST)
            .flat_map(|text| {
                let quoted = serde_json::Value::from(text.as_str()).to_string();
                let escaped = quoted[1..quoted.len() - 1].to_owned();
                [text.clone(), percent_encode(text), escaped].map(String::into_bytes)
            })
            .collect();
        // The longest first: what is part of another secret must not leave the rest of it behind.
        all.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        all.dedup();
        Self(all)
    }

    /// `body` with `***` for each of them. Of a body that was cut, the end may be the beginning of one: it goes, too.
    pub(super) fn hide(&self, mut body: Vec<u8>, cut: bool) -> Vec<u8> {
        for secret in &self.0 {
            body = replace(body, secret);
        }
        if cut {
            let begun = |secret: &Vec<u8>| (1..secret.len()).rev().find(|&n| body.ends_with(&secret[..n]));
            let longest = self.0.iter().filter_map(begun).max().unwrap_or(0);
            body.truncate(body.len() - longest);
        }
        body
    }
}

fn replace(body: Vec<u8>, secret: &[u8]) -> Vec<u8> {
    let find = |from: &[u8]| from.windows(secret.len()).position(|window| window == secret);
    let Some(first) = find(&body) else { return body };
    let mut kept = Vec::with_capacity(body.len());
    let (mut rest, mut next) = (&body[..], Some(first));
    while let Some(at) = next {
        kept.extend_from_slice(&rest[..at]);
        kept.extend_from_slice(MASK);
        rest = &rest[at + secret.len()..];
        next = find(rest);
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hide(secrets: &[&str], body: &str, cut: bool) -> String {
        let secrets: Vec<_> = secrets.iter().map(ToString::to_string).collect();
        String::from_utf8(Secrets::new(&secrets).hide(body.as_bytes().to_vec(), cut)).unwrap()
    }

    #[test]
    fn secrets_do_not_come_back() {
        let secrets = ["Bearer hunter2/\"x", "hunter2/\"x", "short"];
        for (body, hidden) in [
            ("no Bearer hunter2/\"x, no", "no ***, no"),
            ("hunter2/\"xhunter2/\"x", "******"),
            (r#"{"token": "hunter2/\"x"}"#, r#"{"token": "***"}"#),
            ("?token=hunter2%2F%22x&a=b", "?token=***&a=b"),
            ("a short word", "a short word"),
            ("", ""),
        ] {
            assert_eq!(hide(&secrets, body, false), hidden);
        }
    }

    #[test]
    fn nor_does_the_part_of_one_before_the_cut() {
        let secrets = ["hunter2hunter2"];
        assert_eq!(hide(&secrets, "the token hunter2hunt", true), "the token ");
        assert_eq!(hide(&secrets, "the token hunter2hunt", false), "the token hunter2hunt");
        assert_eq!(hide(&secrets, "the token hunter2hunter2", true), "the token ***");
        assert_eq!(hide(&secrets, "x", true), "x");
    }
}
