//! Several at once, held locks, and units that die halfway.

mod cap;
mod dropped;
mod ends;
mod holes;
mod keys;
mod locks;
mod pairs;
mod torture;
