//! Real processes, killed, frozen and stopped for real.

mod crash;
mod fleet;
mod shutdown;
mod stuck;
mod tuning;
