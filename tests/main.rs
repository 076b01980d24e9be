//! One binary for all tests. `support` is what they stand on, `conformance` the contract that every database keeps,
//! `race` what happens when several do it at once or one dies halfway.

#[cfg(test)]
#[macro_use]
mod support;

#[cfg(test)]
mod conformance;
mod quick2;
#[cfg(test)]
mod race;
#[cfg(test)]
mod servers;
