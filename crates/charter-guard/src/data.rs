//! The description of a tool call: the data of the event `tool.call`.

use serde_json::{Map, Value, json};

use crate::ToolCall;
use crate::asks;
pub use crate::does::Does;
use crate::text::{bounded, digest_of};
pub(crate) use crate::text::{cut, hex};
use crate::tool;

/// The largest input that is part of the event; a larger one is replaced by its digest and size.
pub const MAX_INPUT_BYTES: usize = 16 * 1024;
/// Upper limit of described paths.
pub const MAX_PATHS: usize = 200;
/// With more paths than these the call is opaque, and one for each usage stands for the others.
const MAX_LISTED_PATHS: usize = MAX_PATHS - 4;
/// Upper limit of named machines; `*` stands for the others.
const MAX_HOSTS: usize = 64;
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
    /// Names of the machines it talks to; `*` stands for those that it does not say.
    pub hosts: Vec<String>,
    /// Those that it talks to otherwise than by a push.
    pub contacts: Vec<String>,
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
            contacts: Vec::new(),
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
        if self.paths.len() < MAX_LISTED_PATHS {
            self.paths.push(fact);
            return;
        }
        self.opaque(format!("more than {MAX_LISTED_PATHS} paths"));
        // One stands for all the others, which no scope but `*` covers.
        match self.paths.iter_mut().skip(MAX_LISTED_PATHS).find(|other| other.usage == fact.usage) {
            Some(other) => {
                other.protected |= fact.protected;
                other.secret |= fact.secret;
                other.guard |= fact.guard;
            }
            None => self.paths.push(PathFact {
                given: "...".to_owned(),
                resolved: None,
                relative: None,
                recursive: true,
                inside: false,
                ..fact
            }),
        }
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
        self.does.contact = true;
        add_host(&mut self.contacts, host);
        self.pushes_to(host);
    }

    /// The same for a push, which needs a permit of its own.
    pub(crate) fn pushes_to(&mut self, host: Option<&str>) {
        self.does.network = true;
        add_host(&mut self.hosts, host);
    }

    /// Returns the data of the event `tool.call`. Its size has an upper limit.
    #[must_use]
    pub fn event_data(&self) -> Value {
        let paths: Vec<Value> = self.paths.iter().map(PathFact::value).collect();
        let commands: Vec<Value> = self.commands.iter().map(SimpleCommand::value).collect();
        let input = bounded(&self.call.input);
        let digest = digest_of(&tool::decided_by(&self.call));
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
            "contacts": self.contacts,
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

fn add_host(hosts: &mut Vec<String>, host: Option<&str>) {
    let known = host.filter(|host| host.len() <= MAX_TEXT_BYTES && hosts.len() < MAX_HOSTS - 1);
    let host = known.unwrap_or("*");
    if !hosts.iter().any(|other| other == host) {
        hosts.push(host.to_owned());
    }
}
