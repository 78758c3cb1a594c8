//! From a crate to an Internet Computer canister.
//!
//! SQLite needs WASI, and a canister may import nothing but `ic0`. So the crate is built for `wasm32-wasip1` with
//! [`ic-wasi-polyfill`](https://docs.rs/ic-wasi-polyfill) inside, and afterwards each WASI import is bound to the function of the
//! polyfill that does its work. The idea is that of [wasi2ic](https://github.com/wasm-forge/wasi2ic).
//!
//! | step | where |
//! |---|---|
//! | `cargo rustc --profile canister --target wasm32-wasip1`, in a target folder of its own | [`Crate`] |
//! | WASI imports bound, `_initialize` runs first, nothing exported but what a canister exports | [`bind`] |
//! | the Candid interface, asked of the module itself | [`charter_icp_host::candid_of`] |
//! | the interface as metadata `candid:service`, gzip | [`with_candid`], [`gzip`] |
//!
//! Same source, same bytes: nothing depends on the time, the machine or the folder.
//!
//! Tests call [`build`]; people call the program `canister-build`:
//!
//! ```no_run
//! let built = charter_canister_build::build("charter-canister")?;
//! assert_eq!(&built.wasm[..4], b"\0asm");
//! println!("{} bytes gzipped\n{}", built.wasm_gz.len(), built.did);
//! # Ok::<(), charter_canister_build::BuildError>(())
//! ```
//!
//! What it does with a module, without cargo:
//!
//! ```
//! let module = wat::parse_str(r#"(module
//!     (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
//!     (memory (export "memory") 1)
//!     (func (export "canister_update roll") (drop (call $random (i32.const 0) (i32.const 4))))
//!     (func (export "__ic_custom_random_get") (param i32 i32) (result i32) (i32.const 0)))"#).unwrap();
//! let bound = charter_canister_build::bind(&module)?;
//! assert!(!bound.windows(4).any(|bytes| bytes == b"wasi"));
//! # Ok::<(), charter_canister_build::BuildError>(())
//! ```
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]

mod bind;
mod compile;
mod did;
mod pack;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use bind::bind;
pub use compile::{Crate, TARGET, workspace};
pub use did::difference;
pub use pack::{gzip, with_candid, write_whole};

/// A canister, ready to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The module: imports only `ic0`, carries its interface as `icp:public candid:service`.
    pub wasm: Vec<u8>,
    /// The same, gzipped: what fits into an install message (2 MiB).
    pub wasm_gz: Vec<u8>,
    /// The Candid interface, as the module tells it.
    pub did: String,
}

/// Why there is no canister.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Started outside of a cargo workspace.
    #[error("no `Cargo.toml` with `[workspace]` in `{}` or above: run it inside the workspace of the canister", .0.display())]
    NoWorkspace(PathBuf),
    /// The target is not installed and cannot be installed from here.
    #[error("the Rust target `{TARGET}` is not installed ({0}): run `rustup target add {TARGET}`")]
    NoTarget(String),
    /// Cargo could not be started.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// What was to be started.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Cargo ended with an error; what it wrote is given.
    #[error("cargo could not build `{package}`{}", if output.is_empty() { "; what it says about it is above".to_string() } else { format!(":\n{output}") })]
    Cargo {
        /// The crate.
        package: String,
        /// What cargo wrote to standard error, or nothing if it was shown as it came.
        output: String,
    },
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The module is no WebAssembly, or not of a kind that a canister can be.
    #[error("the module cannot be a canister: {0}")]
    Module(String),
    /// The module does not tell its interface.
    #[error("no Candid interface: {0}")]
    Candid(String),
}

impl BuildError {
    pub(crate) fn file(path: &Path, source: std::io::Error) -> BuildError {
        BuildError::File { path: path.to_path_buf(), source }
    }
}

/// Builds the canister in the crate `package` of the workspace that the current folder lies in.
///
/// Cargo does nothing if nothing has changed, and within one process the second call for the same crate returns what the first
/// has made, and waits for it: every test may call it.
///
/// # Errors
/// If the crate does not compile or is no canister; the message says what to do.
pub fn build(package: &str) -> Result<Built, BuildError> {
    // One lock: cargo builds one after the other in one folder, too.
    static MADE: Mutex<BTreeMap<String, Built>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(built) = made.get(package) {
        return Ok(built.clone());
    }
    let built = Crate::new(package)?.build()?;
    made.insert(package.to_string(), built.clone());
    Ok(built)
}
