//! What permitq must withstand: a [`proxy`] and private database [`servers`] that fail on purpose, and the [`torture`] that
//! does everything at once.
//!
//! permitq's own tests call this library for a few seconds at a time; the binary runs it for as long as you like.

pub mod proxy;
pub mod rate;
pub mod servers;
pub mod torture;
