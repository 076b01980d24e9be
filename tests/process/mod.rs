//! Real processes, killed, frozen and stopped for real.

mod crash;
mod fleet;
mod idle;
mod probe;
mod shutdown;
mod stuck;
mod tuning;
mod wake;
