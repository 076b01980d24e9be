#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

#[path = "../checks/config.rs"]
mod config;

fuzz_target!(|bytes: &[u8]| -> Corpus { if config::check(bytes) { Corpus::Keep } else { Corpus::Reject } });
