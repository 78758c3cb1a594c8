//! A test host for Internet Computer canisters: runs the real WebAssembly of a canister, one message after the other, in a test,
//! without a replica and without a network.
//!
//! ```
//! use charter_icp_host::{Host, LocalHost, Principal};
//! use std::time::Duration;
//!
//! // A canister that counts, and counts by itself once a minute has passed.
//! let counter = wat::parse_str(r#"(module
//!     (import "ic0" "msg_reply" (func $reply))
//!     (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
//!     (import "ic0" "time" (func $time (result i64)))
//!     (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
//!     (import "ic0" "trap" (func $trap (param i32 i32)))
//!     (memory 1)
//!     (data (i32.const 8) "on purpose")
//!     (func $count (i32.store8 (i32.const 0) (i32.add (i32.load8_u (i32.const 0)) (i32.const 1))))
//!     (func (export "canister_init")
//!         (drop (call $timer (i64.add (call $time) (i64.const 60_000_000_000)))))
//!     (func (export "canister_global_timer") (call $count))
//!     (func (export "canister_update count") (call $count) (call $reply))
//!     (func (export "canister_update fail") (call $count) (call $trap (i32.const 8) (i32.const 10)))
//!     (func (export "canister_query read") (call $append (i32.const 0) (i32.const 1)) (call $reply)))"#).unwrap();
//!
//! let ana = Principal::from_slice(b"ana");
//! let mut host = LocalHost::new();
//! let canister = host.create(&[ana])?;
//! host.install(canister, ana, &counter, b"")?;
//!
//! host.update(canister, ana, "count", b"")?;
//! assert_eq!(host.query(canister, ana, "read", b"")?, [1]);
//!
//! // A trap leaves no trace.
//! let reject = host.update(canister, ana, "fail", b"").unwrap_err();
//! assert_eq!(reject.error, 503);
//! assert!(reject.message.contains("on purpose"));
//! assert_eq!(host.query(canister, ana, "read", b"")?, [1]);
//!
//! // Time passes when the test says so.
//! host.advance(Duration::from_secs(60));
//! host.settle();
//! assert_eq!(host.query(canister, ana, "read", b"")?, [2]);
//!
//! // An upgrade: stable memory stays, the heap does not.
//! host.upgrade(canister, ana, &counter, b"")?;
//! assert_eq!(host.query(canister, ana, "read", b"")?, [0]);
//! # Ok::<(), charter_icp_host::Reject>(())
//! ```
//!
//! Messages can be handed in and run one by one ([`Host::submit`], [`LocalHost::step`]), so that a test can upgrade a canister
//! while it waits for an answer, and an execution can be cut off after any number of instructions ([`LocalHost::fault`]).
//!
//! [`each_host`] runs the same test here and, with the feature `pocket-ic`, on the PocketIC server that the variable `POCKET_IC_BIN`
//! names. No registry has that server, so this second host has only been compiled where it was written, and the table below is
//! from the specification.
//!
//! # What it is like
//!
//! The specification is the Internet Computer's interface specification, "Canister Interface (System API)".
//!
//! | | |
//! |---|---|
//! | messages | each runs alone; its changes (heap, globals, stable memory) stay as a whole or, after a trap, not at all; what it did before an `await` stays |
//! | calls | to itself, to other canisters of the host, to the management canister (`raw_rand`, from a seed; everything else is rejected, IC0407); reply, reject and cleanup callbacks; best-effort calls time out as the clock is advanced |
//! | queries | run on a copy; a query method called as an update, too |
//! | lifecycle | install, reinstall, upgrade as one transaction, stop, start, controllers, `canister_inspect_message`, `canister_version` |
//! | upgrade while a call is open | as on the Internet Computer: the answer calls the function at the same place in the *new* module's table, with an environment of the old heap. That usually traps; stop a canister first |
//! | timer | `canister_global_timer`, on a clock that only a test moves |
//! | instructions | WebAssembly instructions, one each, and the bytes that are copied; limits of the Internet Computer ([`Limits`]). A replica weighs them a little differently: good for comparing, and for limits that are not met by a hair |
//! | wrong use | what a function of the system must not be used for, or not from here, traps (IC0504) |
//! | answers | reject codes, error numbers and, nearly, texts of a replica |
//!
//! Not there: subnets, consensus, signatures and certificates (a certificate is present in queries, and certifies nothing), cycles
//! (the balance is always 100 T, nothing costs anything), heartbeats and the hook for low memory, composite queries that call,
//! HTTP outcalls, memories of 64 bits, more than 16 GiB of stable memory, changed tables and dropped segments after a trap, limits
//! on the size of users' messages.
//!
//! # How a trap is undone
//!
//! Stable memory has an undo log by pages. For the heap there is a copy from some messages ago; after a trap the messages since
//! then run again, with the same inputs, and give the same state. So a message costs no copy: one to two billion instructions per
//! second, also in a debug build, if the interpreter is optimized: the workspace's `Cargo.toml` says
//! `[profile.dev.package.wasmi] opt-level = 3` and the same for its parts.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]

mod api;
mod candid_of;
mod canister;
mod code;
mod each;
mod entry;
mod env;
mod host;
mod instance;
mod lifecycle;
mod limits;
mod local;
mod management;
#[cfg(feature = "pocket-ic")]
mod pocket;
mod reject;
mod run;
mod stable;

pub use candid::Principal;
pub use candid_of::candid_of;
pub use canister::{Line, Spent, Status};
pub use each::{NoHost, each_host};
pub use entry::Entry;
pub use host::{CallError, CallId, Host, ask, call};
pub use limits::{InjectedFault, Limits};
pub use local::{LocalHost, Step};
#[cfg(feature = "pocket-ic")]
pub use pocket::PocketHost;
pub use reject::{Answer, Reject, RejectCode};

/// A module that cannot be a canister.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadModule(String);

impl BadModule {
    pub(crate) fn new(why: impl std::fmt::Display) -> BadModule {
        BadModule(why.to_string())
    }
}
