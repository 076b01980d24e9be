//! One binary for all tests; README.md in this folder tells them apart.

#[cfg(test)]
#[allow(dead_code)] // shared with the cluster's test binary
#[macro_use]
mod support;

mod cli;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod downstream;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod list;
#[cfg(test)]
mod process;
#[cfg(test)]
mod race;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod servers;
