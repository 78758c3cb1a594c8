#![doc = include_str!("../README.md")]
// Large errors are acceptable: an error ends the operation.
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod admit;
pub mod approval;
pub mod backend;
mod calls;
mod charter;
mod error;
mod events;
mod export;
mod grant;
mod host;
mod inner;
mod mailbox;
mod options;
mod past;
mod rates;
mod recovery;
mod request;
mod runtime;
mod summary;
mod sync;
mod task_tracker;
mod tasks;
mod text;
mod timer_queue;
mod trace;
mod view;

pub use admit::{ActorError, folder_need};
pub use charter::Charter;
pub use charter_run::{BadRunId, NextAttempt, Resume, Task, check_run_id, open_tasks, tasks};
pub use error::RuntimeError;
pub use events::{Recorded, RuntimeEvent, Subscription, Working};
pub use export::{read_export, verify_export};
pub use grant::{BadGrant, Grant, OPERATOR};
pub use mailbox::is_untrusted;
pub use options::{FaultInjection, FindFolder, HOST_RUN, Limits, NewId, Options, ResumeRuns, new_run_id};
pub use recovery::{Recovery, after_restart};
pub use request::{Receipt, SendEvent, Start, View};
pub use runtime::{Runtime, SHUT_DOWN};
pub use summary::{is_blank, page_rows};
pub use text::{ErrorText, parse_json, parse_request};
