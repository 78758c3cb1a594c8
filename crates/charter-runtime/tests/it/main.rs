//! Integration tests of the embedded host.

mod actors;
mod attempts;
mod common;
mod crash;
mod documents;
mod events;
mod full;
mod programs;
