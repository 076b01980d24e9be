//! Several at once, held locks, and units that die halfway.

mod cap;
mod dropped;
mod holes;
mod locks;
mod pairs;
mod torture;
