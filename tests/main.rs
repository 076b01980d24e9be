//! One binary for all tests: see `README.md` beside this file for what is where.

#[cfg(test)]
mod quick;
mod quick2;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod support;
