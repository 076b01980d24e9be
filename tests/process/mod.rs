//! Real processes, killed, frozen and stopped for real.

mod burst;
mod crash;
mod down;
mod fleet;
mod freeze;
mod handler;
mod heart;
mod idle;
mod kills;
mod long;
mod probe;
mod prune;
mod rights;
mod shutdown;
mod stuck;
mod tuning;
mod wake;
mod zone;
