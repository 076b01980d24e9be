#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/duration.rs"]
mod duration;

fuzz_target!(|text: &str| duration::check(text));
