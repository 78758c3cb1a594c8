//! Codes of failures that a host reports before an actor is called; each has a page in
//! `docs/codes/`.

/// A file that a command uses in place is not the one with which the run started.
pub const ACTOR_CHANGED: &str = "actor-changed";

/// The run came from another journal, and nobody has allowed its actors to work.
pub const UNTRUSTED: &str = "untrusted";

/// All codes.
pub const ALL: [&str; 2] = [ACTOR_CHANGED, UNTRUSTED];
