#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[cfg(test)]
extern crate self as charter_workspace;
#[cfg(test)]
#[path = "../tests/it/folder.rs"]
mod folder;

mod apply;
mod changeset;
mod copy;
mod curate;
mod diff;
mod dir;
pub mod dogs;
mod draft;
mod error;
mod git;
mod insights;
mod intent;
pub mod json;
mod loose;
mod manifest;
mod path;
mod place;
mod recover;
mod review;
mod secrets;
mod store;
mod verify;
mod watch;
mod wishes;
mod workspace;

pub use apply::{ApplyRequest, ChangesetApproval};
pub use changeset::{Change, Changeset, MAX_CHANGES, MAX_CONTENT_BYTES, MAX_SUMMARY_BYTES, Operation};
pub use curate::{Bundle, CurateOptions, FileKind, ListedFile, Listing};
pub use diff::{DiffLine, FileDiff, LineKind, visible};
pub use draft::Draft;
pub use error::{ChangesetError, Error};
pub use git::{CommitRequest, Committed, Repository};
pub use insights::{CycleOutcome, Insight, StoredInsight};
pub use intent::Applied;
pub use path::{InvalidPath, RelPath};
pub use place::FolderIdentity;
pub use recover::ApplyRecovery;
pub use review::review;
pub use secrets::SECRETS;
pub use store::Store;
pub use verify::{Verification, VerifyCommand};
pub use watch::{Unwatched, Watch};
pub use wishes::leaves_out;
pub use workspace::Workspace;
