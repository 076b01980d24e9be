//! The contract of the store: what every database keeps, one case per promise.

mod admin;
mod by_hand;
mod claim;
mod clock;
mod cooling;
mod dependencies;
mod enqueue;
mod finish;
mod lease;
mod life;
mod limits;
mod look;
mod model;
mod prune;
mod reclaim;
mod repair;
mod schema;
mod step;
mod tuning;
