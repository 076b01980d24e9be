#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/answer.rs"]
mod answer;

fuzz_target!(|input: (u16, u8, bool, u16, &str, &str, &[u8])| answer::check(input));
