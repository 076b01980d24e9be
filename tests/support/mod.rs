//! What tests stand on. Knows nothing of the tests that use it.

pub(crate) mod servers;
