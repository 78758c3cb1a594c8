//! Builds an Internet Computer canister from a crate.
//!
//! SQLite needs WASI, and a canister may import nothing but `ic0`. So the crate is built for
//! `wasm32-wasip1` with [`ic-wasi-polyfill`](https://docs.rs/ic-wasi-polyfill), and each WASI
//! import is then bound to the polyfill's function, as in
//! [wasi2ic](https://github.com/wasm-forge/wasi2ic).
//!
//! | step | where |
//! |---|---|
//! | `cargo rustc --profile canister --target wasm32-wasip1`, in a separate target folder |
//! [`Crate`] |
//! | bind WASI imports, make `_initialize` the start function, remove exports that canisters do not have | [`bind`] |
//! | read the Candid interface from the module | [`charter_icp_host::candid_of`] |
//! | add the interface as metadata `candid:service`, gzip | [`with_candid`], [`gzip`] |
//!
//! The build is reproducible: it does not depend on the time, the machine or the folder.
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
//! Binding a module, without cargo:
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
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod bind;
mod compile;
mod did;
mod pack;
mod scan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use bind::bind;
pub use compile::{Crate, TARGET, workspace};
pub use did::difference;
pub use pack::{gzip, with_candid, write_atomically};

/// A canister that can be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The module. It imports only `ic0` and has its interface in the section `icp:public
    /// candid:service`.
    pub wasm: Vec<u8>,
    /// The gzipped module, which has to fit into an install message (2 MiB).
    pub wasm_gz: Vec<u8>,
    /// The Candid interface, read from the module.
    pub did: String,
}

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder is not in a cargo workspace.
    #[error("no `Cargo.toml` with `[workspace]` in `{}` or above: run it inside the workspace of the canister", .0.display())]
    NoWorkspace(PathBuf),
    /// The target is not installed, and installing it failed.
    #[error("the Rust target `{TARGET}` is not installed ({0}): run `rustup target add {TARGET}`")]
    NoTarget(String),
    /// Cargo could not be started.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Cargo failed.
    #[error("cargo could not build `{package}`{}", if output.is_empty() { "; see its output above".to_string() } else { format!(":\n{output}") })]
    Cargo {
        /// The crate.
        package: String,
        /// The standard error of cargo; empty if it was shown already.
        output: String,
    },
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The module is not WebAssembly, or not suitable for a canister.
    #[error("the module cannot be a canister: {0}")]
    Module(String),
    /// The module does not export its interface.
    #[error("no Candid interface: {0}")]
    Candid(String),
}

impl BuildError {
    pub(crate) fn file(path: &Path, source: std::io::Error) -> BuildError {
        BuildError::File { path: path.to_path_buf(), source }
    }
}

/// Builds the canister of the crate `package` in the current workspace.
///
/// Cargo does nothing if nothing has changed. Within a process, a second call for the same crate
/// waits for the first and returns its result, so every test may call this function.
///
/// # Errors
/// The crate does not compile or is not a canister; the message says what to do.
pub fn build(package: &str) -> Result<Built, BuildError> {
    // One lock for all crates, because cargo locks its folder anyway.
    static MADE: Mutex<BTreeMap<String, Built>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(built) = made.get(package) {
        return Ok(built.clone());
    }
    let built = Crate::new(package)?.build()?;
    made.insert(package.to_string(), built.clone());
    Ok(built)
}
