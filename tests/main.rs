//! One binary for all tests: see `README.md` beside this file for what is where.

mod cli;
mod quick;
