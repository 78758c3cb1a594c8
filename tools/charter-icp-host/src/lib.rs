//! A test host for Internet Computer canisters: runs the real WebAssembly of a canister in a test,
//! message by message, without a replica and without a network.
//!
//! ```
//! use charter_icp_host::{Host, LocalHost, Principal};
//! use std::time::Duration;
//!
//! // A canister with a counter, which it also increments itself after a minute.
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
//! // A trap rolls back all changes.
//! let reject = host.update(canister, ana, "fail", b"").unwrap_err();
//! assert_eq!(reject.error, 503);
//! assert!(reject.message.contains("on purpose"));
//! assert_eq!(host.query(canister, ana, "read", b"")?, [1]);
//!
//! // Time passes only when the test advances it.
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
//! Messages can be submitted and executed one by one ([`Host::submit`], [`LocalHost::step`]), so a
//! test can upgrade a canister that waits for an answer. An execution can be cut off after any
//! number of instructions ([`LocalHost::inject`]).
//!
//! [`each_host`] runs the same test here and, with the feature `pocket-ic`, on the PocketIC server
//! that the variable `POCKET_IC_BIN` names. No package registry has that server, so CI only
//! compiles this second host, and the table below is from the specification.
//!
//! # What it models
//!
//! The specification is the Internet Computer's interface specification, "Canister Interface
//! (System API)".
//!
//! | | |
//! |---|---|
//! | messages | executed one at a time; their changes (heap, globals, stable memory) are committed as a whole or, after a trap, not at all; changes before an `await` are committed |
//! | calls | to itself, to other canisters of the host, to the management canister (`raw_rand`, from a seed; everything else is rejected, IC0407); reply, reject and cleanup callbacks; best-effort calls time out as the clock advances |
//! | queries | executed on a copy; so are query methods called as updates |
//! | lifecycle | install, reinstall, upgrade as one transaction, stop, start, controllers, `canister_inspect_message`, `canister_version` |
//! | upgrade while a call is open | as on the Internet Computer: the answer calls the function at the same place in the *new* module's table, with an environment of the old heap. That usually traps; stop a canister first |
//! | timer | `canister_global_timer`, on a clock that only a test moves |
//! | instructions | one for each WebAssembly instruction and each byte copied; limits of the Internet Computer ([`Limits`]). A replica weighs them slightly differently, so the counts are good for comparisons, not for exact limits |
//! | contract violations | a system function that is called with wrong arguments or from the wrong entry point traps (IC0504) |
//! | answers | reject codes and error numbers of a replica, and nearly the same messages |
//!
//! Not supported: subnets, consensus, signatures and certificates (queries have a certificate that
//! certifies nothing), cycles (the balance is always 100 T and nothing costs any), heartbeats, the
//! low-memory hook, calls in composite queries, HTTP outcalls, 64-bit memories, more than 16 GiB of
//! stable memory, rollback of changed tables and dropped segments, limits on the size of ingress
//! messages.
//!
//! # How a trap is rolled back
//!
//! Stable memory has an undo log of pages. The heap has a copy that is some messages old; after a
//! trap, the messages since then are executed again with the same inputs, which gives the same
//! state. So a message needs no copy. The host executes one to two billion instructions per second,
//! in debug builds as well if the interpreter is optimized: the workspace's `Cargo.toml` has
//! `[profile.dev.package.wasmi] opt-level = 3`, and the same for its parts.
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

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

/// The error for a module that cannot be a canister.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadModule(String);

impl BadModule {
    pub(crate) fn new(why: impl std::fmt::Display) -> BadModule {
        BadModule(why.to_string())
    }
}
