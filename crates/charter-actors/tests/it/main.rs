//! Integration tests of the executors' common parts. Executors are tested with a host, in
//! `charter-runtime`.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, missing_docs)]

mod addresses;
mod arriving;
mod cut;
mod network;
mod retry_after;
mod secrets;
