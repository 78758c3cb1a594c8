//! The integration tests of the crate, in one binary.

mod calls;
mod candid;
mod common;
mod hostile;
mod instructions;
mod lifecycle;
mod modes;
#[cfg(feature = "pocket-ic")]
mod pocket;
mod queries;
mod rollback;
mod timers;
