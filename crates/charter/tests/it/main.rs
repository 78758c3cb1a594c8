//! The examples run to their end.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

#[path = "../../examples/check.rs"]
mod check;
#[path = "../../examples/embed.rs"]
mod embed;
mod equivalence;
#[path = "../../examples/executor.rs"]
mod executor;
#[path = "../../examples/host.rs"]
mod host;
#[path = "../../examples/step.rs"]
mod step;
#[path = "../../examples/store.rs"]
mod store;

#[test]
fn check_finds_the_violation() {
    check::main().unwrap();
}

#[test]
fn embed_ends() {
    embed::main().unwrap();
}

#[test]
fn executor_answers() {
    executor::main().unwrap();
}

#[test]
fn host_counts_each_event_once() {
    host::main().unwrap();
}

#[test]
fn step_reaches_the_final_state() {
    step::main().unwrap();
}

#[test]
fn store_verifies() {
    store::main().unwrap();
}
