//! The description of a tool call: the data of the event `tool.call`.

use serde_json::{Map, Value, json};

use crate::ToolCall;
use crate::asks;
use crate::text::bounded;
pub(crate) use crate::text::{cut, hex};

/// The largest input that is part of the event; a larger one is replaced by its digest and size.
pub const MAX_INPUT_BYTES: usize = 16 * 1024;
/// Upper limit of described paths; with more the call is opaque.
pub const MAX_PATHS: usize = 200;
/// Upper limit of described commands; with more the call is opaque.
pub(crate) const MAX_COMMANDS: usize = 64;
/// Upper limit of each text of the description; the rest is cut off.
pub const MAX_TEXT_BYTES: usize = 512;
const MAX_ARGUMENTS: usize = 32;
const MAX_REASONS: usize = 16;
/// Uses of paths and entries of folders that are looked at for one call.
const MAX_LOOKED_AT: usize = 20_000;

/// What kind of call it is, as its tool says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Reads files.
    Read,
    /// Looks for files or text in files.
    Search,
    /// Creates or changes files.
    Write,
    /// Deletes files.
    Delete,
    /// Runs a command line.
    Command,
    /// Talks to another machine.
    Network,
    /// Asks the user, or plans; nothing outside of the client happens.
    Ask,
    /// An unknown tool.
    Other,
}

impl Act {
    /// The name in the event's data.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Command => "command",
            Self::Network => "network",
            Self::Ask => "ask",
            Self::Other => "other",
        }
    }
}

/// How a path is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// Names are listed; contents are not read.
    Search,
    /// Contents are read.
    Read,
    /// It is created or changed.
    Write,
    /// It is deleted.
    Delete,
}

impl Usage {
    /// The name in the event's data.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }

    /// Whether files are different afterwards.
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Delete)
    }
}

/// A path of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFact {
    /// As the call says it.
    pub given: String,
    /// Absolute, without links; nothing if it cannot be resolved.
    pub resolved: Option<String>,
    /// Relative to the workspace, if it is inside.
    pub relative: Option<String>,
    /// What happens to it.
    pub usage: Usage,
    /// Whether everything below it is meant, too.
    pub recursive: bool,
    /// Whether it is inside the workspace.
    pub inside: bool,
    /// Whether the project protects it, or something below it if it is recursive.
    pub protected: bool,
    /// Whether its name is that of a secret, or something below it if it is recursive.
    pub secret: bool,
    /// Whether it belongs to the control of agents: hook configuration, journal, keys.
    pub guard: bool,
}

/// A simple command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// The program's name.
    pub program: String,
    /// Its arguments; `\u{fffd}` stands for one that is not known.
    pub arguments: Vec<String>,
    /// The folder it runs in; nothing if that is not certain.
    pub cwd: Option<String>,
    /// Files that standard streams are redirected to or from, with the operator.
    pub redirections: Vec<String>,
    /// What it does, as far as it is known.
    pub does: Vec<&'static str>,
    /// Whether there is something about it that cannot be read.
    pub opaque: bool,
}

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
    /// Changes or deletes the control of agents: hook configuration, journal, keys.
    pub guard: bool,
    /// Runs a command line.
    pub command: bool,
    /// Talks to other machines.
    pub network: bool,
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
    fn value(&self) -> Value {
        json!({
            "read": self.read, "readOutside": self.read_outside, "search": self.search,
            "write": self.write, "writeOutside": self.write_outside,
            "delete": self.delete, "deleteOutside": self.delete_outside,
            "protected": self.protected, "secret": self.secret, "guard": self.guard,
            "command": self.command, "network": self.network, "commit": self.commit, "commitTree": self.commit_tree,
            "push": self.push, "test": self.test, "run": self.run, "ask": self.ask,
            "other": self.other, "opaque": self.opaque,
        })
    }
}

/// What a tool call would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The call.
    pub call: ToolCall,
    /// Its kind.
    pub act: Act,
    /// What it does.
    pub does: Does,
    /// Every path it names.
    pub paths: Vec<PathFact>,
    /// The simple commands of its command line.
    pub commands: Vec<SimpleCommand>,
    /// Names of the machines it talks to, as far as it says them.
    pub hosts: Vec<String>,
    /// Why it is opaque.
    pub reasons: Vec<String>,
    /// The pushes, each as it is called; nothing if it is not known.
    pub pushes: Vec<Option<String>>,
    /// Digest of the working files, if the call tests or commits them.
    pub tree: Option<String>,
    /// A commit may have what was staged at another time.
    pub(crate) commits_index: bool,
    /// Uses of paths and entries of folders that may still be looked at.
    pub(crate) left: usize,
}

impl Description {
    pub(crate) fn new(call: &ToolCall, act: Act) -> Self {
        Self {
            call: call.clone(),
            act,
            does: Does::default(),
            paths: Vec::new(),
            commands: Vec::new(),
            hosts: Vec::new(),
            reasons: Vec::new(),
            pushes: Vec::new(),
            tree: None,
            commits_index: false,
            left: MAX_LOOKED_AT,
        }
    }

    /// Adds why something cannot be read.
    pub(crate) fn opaque(&mut self, reason: impl Into<String>) {
        self.does.opaque = true;
        let reason = cut(&reason.into());
        if self.reasons.len() < MAX_REASONS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Counts something that is looked at; `false` if there is too much of it.
    pub(crate) fn charge(&mut self, looked_at: usize) -> bool {
        match self.left.checked_sub(looked_at) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.opaque("too many paths to look at");
                false
            }
        }
    }

    /// Adds a path, and what using it means.
    pub(crate) fn path(&mut self, fact: PathFact) {
        let outside = !fact.inside;
        match fact.usage {
            Usage::Search => self.does.search = true,
            Usage::Read => self.does.read = true,
            Usage::Write => self.does.write = true,
            Usage::Delete => self.does.delete = true,
        }
        self.does.read_outside |= outside && !fact.usage.changes();
        self.does.write_outside |= outside && fact.usage == Usage::Write;
        self.does.delete_outside |= outside && fact.usage == Usage::Delete;
        self.does.protected |= fact.protected && fact.usage.changes();
        self.does.guard |= fact.guard && fact.usage.changes();
        self.does.secret |= fact.secret && fact.usage != Usage::Search;
        if self.paths.contains(&fact) {
            return;
        }
        if self.paths.len() >= MAX_PATHS {
            self.opaque(format!("more than {MAX_PATHS} paths"));
            return;
        }
        self.paths.push(fact);
    }

    pub(crate) fn command(&mut self, command: SimpleCommand) {
        if self.commands.len() >= MAX_COMMANDS {
            self.opaque(format!("more than {MAX_COMMANDS} commands"));
            return;
        }
        self.commands.push(command);
    }

    /// Adds that the call talks to another machine; nothing if it does not say to which.
    pub(crate) fn network(&mut self, host: Option<&str>) {
        self.does.network = true;
        let host = cut(host.unwrap_or("*"));
        if self.hosts.len() < MAX_COMMANDS && !self.hosts.contains(&host) {
            self.hosts.push(host);
        } else if self.hosts.len() >= MAX_COMMANDS {
            self.opaque(format!("more than {MAX_COMMANDS} hosts"));
        }
    }

    /// Returns the data of the event `tool.call`. Its size has an upper limit.
    #[must_use]
    pub fn event_data(&self) -> Value {
        let paths: Vec<Value> = self.paths.iter().map(PathFact::value).collect();
        let commands: Vec<Value> = self.commands.iter().map(SimpleCommand::value).collect();
        let (input, digest) = bounded(&self.call.input);
        let mut data = json!({
            "tool": cut(&self.call.tool),
            "client": cut(&self.call.client),
            "session": cut(&self.call.session),
            "call": cut(&self.call.call),
            "cwd": cut(&self.call.cwd.to_string_lossy()),
            "act": self.act.name(),
            "does": self.does.value(),
            "input": input,
            "digest": &digest,
            "paths": paths,
            "commands": commands,
            "hosts": self.hosts,
            "opaque": self.does.opaque,
            "reasons": self.reasons,
            "asks": asks::asks(self, &digest),
        });
        if let (Some(tree), Some(fields)) = (&self.tree, data.as_object_mut()) {
            fields.insert("tree".to_owned(), json!(tree));
        }
        data
    }
}

impl PathFact {
    fn value(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("given".to_owned(), json!(cut(&self.given)));
        if let Some(resolved) = &self.resolved {
            fields.insert("resolved".to_owned(), json!(cut(resolved)));
        }
        if let Some(relative) = &self.relative {
            fields.insert("relative".to_owned(), json!(cut(relative)));
        }
        fields.insert("usage".to_owned(), json!(self.usage.name()));
        for (name, value) in [
            ("recursive", self.recursive),
            ("inside", self.inside),
            ("protected", self.protected),
            ("secret", self.secret),
            ("guard", self.guard),
        ] {
            fields.insert(name.to_owned(), json!(value));
        }
        Value::Object(fields)
    }
}

impl SimpleCommand {
    fn value(&self) -> Value {
        let arguments: Vec<String> = self.arguments.iter().take(MAX_ARGUMENTS).map(|text| cut(text)).collect();
        let redirections: Vec<String> = self.redirections.iter().take(MAX_ARGUMENTS).map(|text| cut(text)).collect();
        let mut value = json!({
            "program": cut(&self.program),
            "arguments": arguments,
            "redirections": redirections,
            "does": self.does,
            "opaque": self.opaque,
        });
        if let (Some(cwd), Some(fields)) = (&self.cwd, value.as_object_mut()) {
            fields.insert("cwd".to_owned(), json!(cut(cwd)));
        }
        value
    }
}
