//! A downstream that is slow, silent, busy or strange, and what a consumer makes of it.

mod raw;
mod retry;
mod timeout;
