//! What the fuzz targets check, with a small corpus and what a few thousand random changes make of it: so that they keep
//! compiling and passing. Minutes of it: see `fuzz/README.md`.

#[path = "../fuzz/checks/answer.rs"]
mod answer;
#[path = "../fuzz/checks/batch.rs"]
mod batch;
#[path = "../fuzz/checks/config.rs"]
mod config;
#[path = "../fuzz/checks/cron.rs"]
mod cron;
#[path = "../fuzz/checks/duration.rs"]
mod duration;

use fastrand::Rng;

/// Pieces that mean something to somebody.
const PIECES: [&[u8]; 16] = [
    b"\n",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"\0",
    b"\x1b[2J",
    b"\\u001b",
    b"\\n",
    b"\xff\xfe",
    b"env:TOKEN",
    b"hunter2",
    b"1e999",
    b"-1",
    "\u{202e}".as_bytes(),
];

/// A seed, and what becomes of it by up to four changes; the same each time.
fn rounds(seeds: &[&[u8]], times: usize, mut check: impl FnMut(&[u8], &mut Rng)) {
    let mut rng = Rng::with_seed(1);
    for seed in seeds {
        check(seed, &mut rng);
    }
    for _ in 0..times {
        let mut bytes = seeds[rng.usize(..seeds.len())].to_vec();
        for _ in 0..rng.usize(1..=4) {
            let from = rng.usize(..=bytes.len());
            let until = rng.usize(from..=bytes.len().min(from + 8));
            let piece = PIECES[rng.usize(..PIECES.len())];
            let piece = if rng.bool() { piece.to_vec() } else { vec![rng.u8(..)] };
            bytes.splice(from..until, piece);
        }
        check(&bytes, &mut rng);
    }
}

#[test]
fn configurations() {
    let readme = include_str!("../README.md");
    let example = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let small = "[downstream.a]\nurl = \"http://h/{key}?k=hunter2\"\nheaders = { A = \"env:TOKEN\" }\n";
    let odd = "[log]\n\"for\\u001bmat\" = \"json\"\nformat = \"yaml\\n\"\n[\"con\\nsumer\"]\nslots = 0\n";
    rounds(&[example.as_bytes(), odd.as_bytes(), small.as_bytes()], 2_000, |bytes, _| {
        config::check(bytes);
    });
}

#[test]
fn durations() {
    let seeds: [&[u8]; 5] = [b"1h 30m", b"500ms", b"7d", b"1.5s", b"18446744073709551615y"];
    rounds(&seeds, 20_000, |bytes, _| duration::check(&String::from_utf8_lossy(bytes)));
}

#[test]
fn cron_expressions() {
    let seeds: [&[u8]; 8] = [
        b"30 2 * * *",
        b"0 0,12 1-7 * MON",
        b"*/5 * 29 2 *",
        b"0 0 12 L * ?",
        b"0 15 10 ? * 6#3",
        b"0 0 9 15W * ? 2030-2040",
        b"59 59 23 ? JAN-MAR SAT",
        b"@daily",
    ];
    rounds(&seeds, 2_000, |bytes, rng| {
        let (quartz, zone, from) = (rng.bool(), rng.u8(..), rng.i64(..));
        cron::check((quartz, zone, from, &String::from_utf8_lossy(bytes)));
    });
}

#[test]
fn batches() {
    let seed = br#"{"kind": "a", "biz_key": "k", "payload": {"x": [1, "2"]}, "delay": 5, "priority": -1}
{"kind": "b", "run_at": "2026-01-01T00:00:00Z", "max_attempts": 3, "timeout": 2.5, "on_abandon": "fail"}
"#;
    rounds(&[seed], 5_000, |bytes, _| batch::check(bytes));
}

#[test]
fn answers() {
    let seeds: [&[u8]; 3] = [b"a plain answer", "gr\u{fc}\u{df}e \u{1f600}\r\n".as_bytes(), b"17"];
    let dates = ["", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:47 GMT"];
    rounds(&seeds, 20_000, |bytes, rng| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (after, date) = (if rng.bool() { &text } else { dates[rng.usize(..3)] }, dates[rng.usize(..3)]);
        answer::check((rng.u16(..), rng.u8(..), rng.bool(), rng.u16(..64), after, date, bytes));
    });
}
