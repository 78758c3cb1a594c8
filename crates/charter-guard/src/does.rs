//! The facts about a call that a charter decides about.

use serde_json::{Value, json};

/// What a call does, as far as it is known. Each fact is true if any part of the call does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Does {
    /// Reads contents of files.
    pub read: bool,
    /// Reads outside of the workspace.
    pub read_outside: bool,
    /// Lists names of files.
    pub search: bool,
    /// Creates or changes files.
    pub write: bool,
    /// Creates or changes files outside of the workspace.
    pub write_outside: bool,
    /// Deletes files.
    pub delete: bool,
    /// Deletes files outside of the workspace.
    pub delete_outside: bool,
    /// Changes or deletes what the project protects.
    pub protected: bool,
    /// Reads or changes what usually is a secret.
    pub secret: bool,
    /// Prints the environment, or a variable of it that usually is a secret.
    pub environment: bool,
    /// Changes or deletes the control of agents: hook configuration, journal, keys.
    pub guard: bool,
    /// Runs a command line.
    pub command: bool,
    /// Talks to other machines.
    pub network: bool,
    /// Talks to other machines otherwise than by a push.
    pub contact: bool,
    /// Makes a commit.
    pub commit: bool,
    /// The commit contains exactly the working files that version control does not ignore.
    pub commit_tree: bool,
    /// Sends commits elsewhere.
    pub push: bool,
    /// Is exactly the project's test command, in the workspace.
    pub test: bool,
    /// Runs a command that the project allows although what it does cannot be seen.
    pub run: bool,
    /// Asks the user, or plans.
    pub ask: bool,
    /// Uses a tool that the guard does not know.
    pub other: bool,
    /// Does something that cannot be read.
    pub opaque: bool,
}

impl Does {
    pub(crate) fn value(&self) -> Value {
        json!({
            "read": self.read, "readOutside": self.read_outside, "search": self.search,
            "write": self.write, "writeOutside": self.write_outside,
            "delete": self.delete, "deleteOutside": self.delete_outside,
            "protected": self.protected, "secret": self.secret, "environment": self.environment, "guard": self.guard,
            "command": self.command, "network": self.network, "contact": self.contact, "commit": self.commit, "commitTree": self.commit_tree,
            "push": self.push, "test": self.test, "run": self.run, "ask": self.ask,
            "other": self.other, "opaque": self.opaque,
        })
    }
}
