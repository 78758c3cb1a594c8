#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod chain;
mod error;
mod follows;
mod head;
mod holder;
mod host_state;
mod imports;
mod keys;
mod memory;
mod places;
mod private;
mod project;
mod record;
mod replay;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod stored_charter;
mod transfer;
mod usage;
mod verify;
mod waiting;

pub use chain::{Chain, SNAPSHOT_EVERY};
pub use error::StoreError;
pub use head::{HeadCheck, JournalHead};
pub use holder::Holder;
pub use memory::MemoryStore;
pub use places::{move_run, moved_run, place, place_area};
pub use private::{create_private, shared_mode};
pub use record::{
    Approval, EventField, FORMAT, Fields, GENESIS, Manifest, Origin, Record, RecordBuilder, RecordError, Redacted,
    Source, SourceKind, TimerField, TimerWord, Verdict,
};
pub use replay::{Loaded, ReplayError, fork, load, machine, origin, replay};
#[cfg(feature = "sqlite")]
pub use sqlite::{
    AcceptHead, BackupError, Copied, Deletion, QueryClock, SelectError, SelectLimits, SqliteOptions, SqliteStore,
    Visit, check_owner, holder,
};
pub use store::{
    Append, LastModel, MAX_RECORD_BYTES, MAX_STATE_BYTES, OpenEffect, PICODOLLARS, PendingTimer, Reply, Row, RunFilter,
    RunInfo, RunRow, StateChange, Store, StoredCharter, StoredSnapshot, UsageFilter, UsageRow, UsageTotals,
};
pub use transfer::{CheckSource, EXPORT, SourceCheck, TransferError, Verified, export, export_header, import};
pub use verify::{
    Anchor, Difference, Finding, Report, VerifiedRun, VerifyOptions, verify, verify_export, verify_export_with,
    verify_with,
};
pub use waiting::{attempt_waits, waiting_attempts};
