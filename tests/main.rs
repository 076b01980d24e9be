//! One binary for all tests. `support` is what they stand on, `conformance` the contract that every database keeps,
//! `race` what happens when several do it at once or one dies halfway, `process` the binary killed, frozen and stopped for
//! real, `faults` what the database and the line to it can do, `cli` what a person sees, `servers` the throwaway databases
//! themselves.

#[cfg(test)]
#[allow(dead_code)] // shared with the cluster's test binary
#[macro_use]
mod support;

mod cli;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod process;
#[cfg(test)]
mod race;
#[cfg(test)]
mod servers;
