//! The host for one process: one mailbox per run, commit before effects, actors, timers, retries, recovery.
//!
//! ```
//! use std::sync::Arc;
//! use charter_actors::{Folder, VirtualClock};
//! use charter_journal::MemoryStore;
//! use charter_kernel::{Principal, Status};
//! use charter_runtime::{Charter, Options, Runtime, SendEvent, Start};
//! use serde_json::json;
//!
//! let source = "
//! charter: 1
//! id: errand
//! roles: {boss: {}}
//! events: {GO: {by: boss}}
//! actors:
//!   walk: {kind: scripted, answers: [{after: 2h, output: {milk: 2}}]}
//! context: {bag: null}
//! output: = context.bag
//! states:
//!   waiting: {on: {GO: walking}}
//!   walking:
//!     invoke: {src: walk, onDone: {target: home, actions: {assign: {bag: '= event.output'}}}}
//!   home: {type: final}
//! ";
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let clock = VirtualClock::new(1_795_255_200_000);
//! let options = Options::default().clock(clock.clone());
//! let (host, _) = Runtime::open(Arc::new(MemoryStore::new()), options).await?;
//!
//! let document = charter_format::read(source, "errand.yaml", &Default::default()).unwrap();
//! let charter = host.add(Charter::new(&document, Folder::None)?).await?;
//! let boss = Principal::new("ana", &["boss"]);
//! let start = Start { charter: charter.digest(), run: Some("run-1".into()), input: json!({}), by: boss.clone() };
//! host.start(start).await?;
//! assert_eq!(host.legal("run-1", &boss).await?[0].r#type, "GO");
//! let receipt = host.send(SendEvent::new("run-1", "GO", json!({}), boss)).await?;
//! assert!(!receipt.is_refused());
//!
//! // Two hours pass at once.
//! clock.run(86_400_000).await;
//! let view = host.ended("run-1").await?;
//! assert_eq!((view.snapshot.status(), view.snapshot.output()), (Status::Done, Some(&json!({"milk": 2}))));
//! # Ok::<(), charter_runtime::RuntimeError>(())
//! # }).unwrap();
//! ```
//!
//! **The way of an event**: [`Runtime::send`] puts it into the run's mailbox; the kernel judges it; its record is committed; only then
//! the answer is given, subscribers are told, and the effects are executed. Answers and timers come back the same way.
//!
//! **Actors** are run by an [`Executor`](charter_actors::Executor) that is chosen by the actor's `kind`; `docs/actors.md` describes those that every host has.
//!
//! **After a crash** everything that was open is found in the journal: timers keep their deadlines, actors that are idempotent are
//! asked again under the same key, and of the others the run is told that their outcome is not known.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]
// Errors end what is being done; what they weigh does not matter.
#![allow(clippy::result_large_err)]

mod admit;
mod attempts;
mod bounds;
mod calls;
mod charter;
mod error;
mod host;
mod mailbox;
mod options;
mod publish;
mod recovery;
mod runtime;
mod task_tracker;
mod timer_queue;
mod trace;

pub use admit::{ActorError, check_run_id};
pub use charter::Charter;
pub use error::RuntimeError;
pub use options::{Faults, FindFolder, Limits, NewId, Options};
pub use publish::{Recorded, RuntimeEvent, Subscription, Working};
pub use recovery::Recovery;
pub use runtime::{Receipt, Runtime, SendEvent, Start, Task, View};
