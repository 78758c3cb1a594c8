//! Transports to models that record what is said in a cassette.

use std::path::Path;

use charter_actors::Network;
use charter_models::Transport;
#[cfg(feature = "models")]
use charter_models::cassette::Cassette;

use crate::io::Failure;
#[cfg(feature = "models")]
use crate::load::plain;

/// What to do with the file of `--record-models`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// Create the file.
    Create,
    /// Only check that the file can be created.
    Check,
}

/// Asks over the network, and records in a new file.
#[cfg(feature = "models")]
pub(super) fn transport(
    network: &Network,
    path: Option<&Path>,
    recording: Recording,
) -> Result<Box<dyn Transport>, Failure> {
    let http = charter_models::HttpTransport::new(network);
    let Some(path) = path else {
        return Ok(Box::new(http));
    };
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::with_help(format!("cannot write `{}`: {why}", path.display()), "name a new file in an existing folder")
    };
    if recording == Recording::Check {
        if path.symlink_metadata().is_ok() {
            return Err(cannot(&"the file already exists"));
        }
        return Ok(Box::new(http));
    }
    let file = charter_journal::create_private(path).map_err(|e| cannot(&plain(&e)))?;
    Ok(Box::new(charter_models::cassette::Recorder::new(http, file)))
}

/// Answers from a cassette, and adds what it does not have.
#[cfg(feature = "models")]
pub(super) fn completing(network: &Network, path: &Path, recording: Recording) -> Result<Box<dyn Transport>, Failure> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let name = path.display();
    let cannot = |why: &dyn std::fmt::Display| Failure::new(format!("cannot complete `{name}`: {why}"));
    let http = charter_models::HttpTransport::new(network);
    let mut file = match std::fs::OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && recording == Recording::Check => {
            return Ok(Box::new(http));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            charter_journal::create_private(path).map_err(|e| cannot(&plain(&e)))?
        }
        Err(e) => return Err(cannot(&plain(&e))),
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|e| cannot(&plain(&e)))?;
    let cassette = Cassette::parse(&text).map_err(|e| Failure::new(format!("`{name}`: {e}")))?;
    if recording == Recording::Check {
        return Ok(Box::new(http));
    }
    file.try_lock().map_err(|_| cannot(&"another process is recording in it"))?;
    // An incomplete last line is what a recording left that was killed.
    let complete = cassette.complete() as u64;
    file.set_len(complete).and_then(|()| file.seek(SeekFrom::Start(complete))).map_err(|e| cannot(&plain(&e)))?;
    Ok(Box::new(charter_models::cassette::Missing::new(cassette, http, file)))
}

#[cfg(not(feature = "models"))]
pub(super) fn completing(network: &Network, path: &Path, recording: Recording) -> Result<Box<dyn Transport>, Failure> {
    transport(network, Some(path), recording)
}

#[cfg(not(feature = "models"))]
pub(super) fn transport(_: &Network, _: Option<&Path>, _: Recording) -> Result<Box<dyn Transport>, Failure> {
    Err(Failure::with_help(
        "models are not built into this program",
        "build it with default features, or use `--model offline`",
    ))
}
