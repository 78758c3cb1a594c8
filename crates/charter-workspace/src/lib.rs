//! A folder that changes under an approval only.
//!
//! An agent proposes a [`Changeset`]; a person approves exactly that one, by its digest; then it is applied completely or not at
//! all. Nothing here knows runs, models or terminals.
//!
//! `````
//! use charter_workspace::{Approval, CurateOptions, ApplyRequest, Store, Unwatched, Workspace, dogs};
//! # let temporary = tempfile::tempdir().unwrap();
//! # let (folder, beside) = (temporary.path().join("folder"), temporary.path().join("store"));
//! # std::fs::create_dir(&folder).unwrap();
//! std::fs::write(folder.join("greeting.txt"), "Hello\n").unwrap();
//! let store = Store::open(&beside)?;
//! let workspace = Workspace::open(&folder, &store, "run-1", &mut Unwatched)?;
//!
//! // What is there, and what the agent is shown of it.
//! let listing = workspace.curate(&CurateOptions::default())?;
//! assert_eq!(listing.files[0].path, "greeting.txt");
//!
//! // What the agent proposes.
//! let text = format!("\
//! ## Changeset
//!
//! **Summary:** Greet everybody
//! **Changes:** 1
//!
//! ---
//!
//! ```paws-change
//! operation: MODIFY
//! file_path: greeting.txt
//! old_sha256: {}
//! ```
//!
//! ```
//! Hello, world
//! ```
//! ", listing.files[0].sha256);
//! let changeset = dogs::read(text.as_bytes())?;
//!
//! // What a person approves, and what is then done.
//! let approval = Approval { changeset: changeset.digest(), approver: "ana".into(), proposer: "agent".into() };
//! workspace.apply(ApplyRequest { key: "cycle-1", changeset: &changeset, approval: &approval, verify: None }, &mut Unwatched)?;
//! assert_eq!(std::fs::read_to_string(folder.join("greeting.txt")).unwrap(), "Hello, world\n");
//!
//! // And back.
//! workspace.roll_back("cycle-1", &mut Unwatched)?;
//! assert_eq!(std::fs::read_to_string(folder.join("greeting.txt")).unwrap(), "Hello\n");
//! # Ok::<(), charter_workspace::Error>(())
//! `````
//!
//! It needs a Unix (handles of folders, process groups, file locks).

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
mod error;
mod insights;
mod intent;
pub mod json;
mod path;
mod recover;
mod review;
mod store;
mod verify;
mod watch;
mod workspace;

pub use apply::{ApplyRequest, Approval};
pub use changeset::{Change, Changeset, MAX_CHANGES, MAX_CONTENT_BYTES, MAX_SUMMARY_BYTES, Operation};
pub use curate::{Bundle, CurateOptions, FileKind, ListedFile, Listing};
pub use diff::{DiffLine, FileDiff, LineKind, visible};
pub use error::{ChangesetError, Error};
pub use insights::{CycleOutcome, Insight, StoredInsight};
pub use intent::Applied;
pub use path::{InvalidPath, RelPath};
pub use recover::Recovery;
pub use review::review;
pub use store::Store;
pub use verify::{Verification, VerifyCommand};
pub use watch::{Unwatched, Watch};
pub use workspace::Workspace;
