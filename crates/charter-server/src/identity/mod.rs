//! Identities: the keys of a journal, which its run `host` holds, and the sessions of browsers.

pub use charter_runtime::{BadGrant, Grant, HOST_RUN, OPERATOR};

mod directory;
mod logins;
mod office;
mod secret;
mod sessions;

pub use directory::{ADMIN, Caller, Directory, Key, NotKnown, READER, Token};
pub use logins::{Logins, VALID};
pub use office::{HOST_CHARTER, HostError, NewKey, Office, host_charter};
pub(crate) use secret::random as random_text;
pub use secret::{PREFIX, Secret};
pub use sessions::{IDLE, Open, Sessions, Subject, Tickets};

/// The area beside the records where it stands when each key was last used: key id -> time as RFC
/// 3339 text ([`charter_runtime::backend::Backend::host_state`]).
pub const LAST_USED: &str = "keys-used";
