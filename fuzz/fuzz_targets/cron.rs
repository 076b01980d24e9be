#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/cron.rs"]
mod cron;

fuzz_target!(|data: (bool, u8, i64, &str)| cron::check(data));
