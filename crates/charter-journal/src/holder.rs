//! The process that has a journal file open for writing, as it describes itself in `FILE-lock`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The process that holds the lock of a journal file. The lock itself is on the file; this is only
/// what the holder has written down beside it, in `FILE-lock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id; 0 if it is not known.
    pub pid: u32,
    /// The socket on which it accepts requests of other processes; `None` if it accepts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<PathBuf>,
    /// Whether it is starting and will write down an address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starting: bool,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            0 => f.write_str("unknown process"),
            pid => write!(f, "process {pid}"),
        }
    }
}
