#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/batch.rs"]
mod batch;

fuzz_target!(|bytes: &[u8]| batch::check(bytes));
