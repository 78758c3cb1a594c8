//! The reference agrees with itself however often it is restored, and the suite finds defects.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod core;
