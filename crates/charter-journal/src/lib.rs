//! The journal: what happened to every run, as a chain of records that can be replayed and verified.
//!
//! ```
//! use charter_journal::{Chain, MemoryStore, Store, StoredCharter};
//! use charter_kernel::{Envelope, Event, Machine, Principal};
//! use serde_json::json;
//!
//! let source = "
//! charter: 1
//! id: door
//! events: {OPEN: {}}
//! states:
//!   closed: {on: {OPEN: opened}}
//!   opened: {type: final}
//! ";
//! let document = charter_format::read(source, "door.yaml", &Default::default()).unwrap();
//! let machine = Machine::compile(document.definition.clone()).unwrap();
//! let store = MemoryStore::new();
//! store.put_charter(&StoredCharter::new(&document.definition, "door.yaml", source))?;
//!
//! // The start is record 0.
//! let mut chain = Chain::new("run-1");
//! let start = Envelope::host(0, Event::Start { input: json!({}) }, 1_795_255_200_000);
//! let outcome = machine.start("run-1", &start);
//! let append = chain.append(&machine, None, &start, None, &outcome);
//! store.append(vec![append.clone()])?;
//! chain.advance(&append);
//! let snapshot = outcome.unwrap().snapshot;
//!
//! // An event: step, append, and only then do what the step asks for.
//! let open = Envelope::event(chain.next_seq(), "OPEN", json!({}), Principal::new("ana", &[]), 1_795_255_201_000);
//! let outcome = machine.step(&snapshot, &open);
//! let append = chain.append(&machine, Some("my-id"), &open, Some(&snapshot), &outcome);
//! store.append(vec![append.clone()])?;
//! chain.advance(&append);
//!
//! let record = &append.record;
//! assert_eq!((record.from[0].as_ref(), record.state[0].as_ref()), ("closed", "opened"));
//! assert_eq!(record.envelope().unwrap(), open);
//! # Ok::<(), charter_journal::StoreError>(())
//! ```
//!
//! The journal is the truth: snapshots and tables are projections that can be thrown away and made again.

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

mod chain;
mod error;
mod memory;
mod project;
mod record;
mod replay;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod transfer;
mod verify;

pub use chain::{Chain, SNAPSHOT_EVERY};
pub use error::StoreError;
pub use memory::MemoryStore;
pub use record::{
    Approval, EventField, FORMAT, Fields, GENESIS, Origin, Record, RecordBuilder, RecordError, Redacted, Source,
    SourceKind, TimerField, TimerWord, Verdict,
};
pub use replay::{Loaded, ReplayError, fork, load, machine, replay};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{
    Append, MAX_RECORD_BYTES, OpenEffect, PendingTimer, Reply, Row, RunFilter, RunInfo, RunRow, Store, StoredCharter,
    StoredSnapshot,
};
pub use transfer::{EXPORT, TransferError, Verified, export, export_header, import};
pub use verify::{Anchor, Difference, Finding, Report, VerifiedRun, VerifyOptions, verify, verify_export, verify_with};
