#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod address;
mod call;
mod client;
mod clock;
pub mod codes;
mod commands;
mod config;
mod cut;
mod encodings;
mod error;
mod executor;
mod executors;
mod folder;
mod host;
mod kept;
mod layers;
mod network;
mod place;
mod progress;
mod retry_after;
mod secret;
mod shown;
#[cfg(feature = "tls")]
mod tls;
mod variables;
mod virtual_clock;

pub use address::is_public;
pub use call::Call;
pub use charter_journal::{PICODOLLARS, Record, StoreError, UsageFilter, UsageRow, UsageTotals};
pub use charter_run::{ActorPolicy, Fault, KeyError, Retry, delay, texts};
#[cfg(unix)]
pub use charter_workspace::{DiffLine, FileDiff, LineKind};
pub use client::{
    ClientOptions, NOT_PUBLIC, client_in, http_client, is_refused_certificate, unreachable_server, unreachable_through,
};
pub use clock::{ActivityGuard, BoxFuture, Clock, SystemClock};
pub use commands::{check_command, command_files};
pub use config::ActorConfig;
pub use error::{ConfigError, FolderError};
pub use executor::{Beside, Estimate, Executor, Executors, FindSecret, Outcome};
#[cfg(unix)]
pub use executors::Workspaces;
pub use executors::{Exec, Http, Human, Journal, Scripted, check_keys, default_env, standard};
pub use folder::Folder;
pub use host::{ActorEvent, CallHost, Delivery, RunUpdate, RunUpdates};
pub use kept::{Blobs, KeptFiles, NamedFile};
pub use network::{Network, NetworkError, is_this_machine};
pub use progress::{ArrivingText, CallProgress};
pub use retry_after::{date_of_response, retry_after};
pub use secret::{Secret, Secrets, perform};
pub use shown::Shown;
pub use variables::Variables;
pub use virtual_clock::VirtualClock;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks even if the lock is poisoned: the data that these locks guard is consistent between any
/// two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
