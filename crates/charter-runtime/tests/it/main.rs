//! Integration tests of the embedded host.

mod actors;
mod common;
mod crash;
mod documents;
mod events;
mod full;
mod programs;
