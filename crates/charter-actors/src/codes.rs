//! Codes of failures that a host reports before an actor is called; each has a page in
//! `docs/codes/`.

/// A file that a command uses in place is not the one with which the run started.
pub const ACTOR_CHANGED: &str = "actor-changed";

/// All codes.
pub const ALL: [&str; 1] = [ACTOR_CHANGED];
