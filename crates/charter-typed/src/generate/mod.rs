//! From a charter to the text of a Rust module.
//!
//! The module has, for the root and for each entry of `machines`, an enum of states; for each event a struct of its data; `Event`, which is
//! any of them; and for each role a handle with a method for each event that the role may send.

mod names;
mod types;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use charter_format::ReadOptions;
use charter_kernel::definition::{Definition, State};

use names::{camel, snake};
use types::{Types, doc};

/// Why no Rust could be made of a charter.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the charter `{path}`: {cause}")]
    File {
        /// As it was given.
        path: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// It is no charter; the diagnostics, rendered for people.
    #[error("{0}")]
    Charter(String),
    /// Two names of the charter are one name in Rust.
    #[error("{what} `{first}` and `{second}` would both be called `{name}` in Rust; rename one of them")]
    SameName {
        /// States, events, roles.
        what: &'static str,
        /// One.
        first: String,
        /// The other.
        second: String,
        /// The name of Rust.
        name: String,
    },
}

/// Reads a charter and gives the text of its module.
///
/// # Errors
/// The file, what is wrong with the charter, or two names that Rust cannot tell apart.
pub fn from_file(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let source = std::fs::read_to_string(path).map_err(|cause| Error::File { path: name.clone(), cause })?;
    from_source(&source, &name)
}

/// The same for a charter that has been read; `name` stands in messages.
///
/// # Errors
/// What is wrong with the charter, or two names that Rust cannot tell apart.
pub fn from_source(source: &str, name: &str) -> Result<String, Error> {
    let document = charter_format::read(source, name, &ReadOptions::default())
        .map_err(|wrong| Error::Charter(wrong.to_string()))?;
    from_definition(&document.definition)
}

/// The same for a charter in its core form.
///
/// # Errors
/// Two names that Rust cannot tell apart.
pub fn from_definition(definition: &Definition) -> Result<String, Error> {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "// Made by charter-typed from the charter `{}`{}. Not to be edited.\n",
        definition.id,
        if definition.version.is_empty() { String::new() } else { format!(" {}", definition.version) }
    );
    let _ = writeln!(
        out,
        "/// Digest of the charter that this was made from.\npub const CHARTER: &str = {:?};\n",
        definition.digest().to_string()
    );
    states(&mut out, "State", "the run", &definition.root.state)?;
    let mut machines = Names::new("the machines");
    for (name, chart) in &definition.machines {
        states(&mut out, &machines.add(name, format!("{}State", camel(name)))?, &format!("a `{name}`"), &chart.state)?;
    }
    let mut types = Types::new(&definition.types);
    let mut events = Vec::new();
    let mut names = Names::new("the events");
    for (name, decl) in &definition.events {
        let data = decl.data.as_ref();
        let carries = data.and_then(|schema| types.event(name, schema));
        // An event whose data has no fields that are known may carry anything, unless it may carry nothing.
        let nothing = data.is_none_or(|d| d.get("maxProperties") == Some(&0.into()));
        let carries = match (carries, nothing) {
            (Some(name), _) => Some(format!("data::{name}")),
            (None, true) => None,
            (None, false) => Some("::serde_json::Value".into()),
        };
        events.push(EventFace {
            name,
            variant: names.add(name, camel(name))?,
            carries,
            about: decl.description.as_deref(),
            by: senders(definition, name, &decl.by),
        });
    }
    let _ = writeln!(out, "/// What the events carry.\npub mod data {{");
    for line in types.text.lines() {
        let _ = writeln!(out, "{}{line}", if line.is_empty() { "" } else { "    " });
    }
    let _ = writeln!(out, "}}\n");
    event_enum(&mut out, &events);
    let mut roles = Names::new("the roles");
    for (role, decl) in &definition.roles {
        let name = roles.add(role, format!("As{}", camel(role)))?;
        handle(&mut out, &name, role, decl.description.as_deref(), &events)?;
    }
    Ok(out)
}

struct EventFace<'d> {
    name: &'d str,
    variant: String,
    /// The type of its data.
    carries: Option<String>,
    about: Option<&'d str>,
    /// Roles that may send it; none: anybody.
    by: Option<BTreeSet<&'d str>>,
}

/// Who may send an event: the roles of its declaration; if it names none, those of the transitions that take it, if all of them name some.
fn senders<'d>(definition: &'d Definition, event: &str, declared: &'d [String]) -> Option<BTreeSet<&'d str>> {
    if !declared.is_empty() {
        return Some(declared.iter().map(String::as_str).collect());
    }
    let mut roles = BTreeSet::new();
    let charts = std::iter::once(&definition.root).chain(definition.machines.values());
    let mut states: Vec<&State> = charts.map(|c| &c.state).collect();
    while let Some(state) = states.pop() {
        states.extend(state.states.values());
        for on in &state.on {
            if !on.events.iter().any(|e| matches(e, event)) {
                continue;
            }
            for transition in &on.transitions {
                if transition.by.is_empty() {
                    return None;
                }
                roles.extend(transition.by.iter().map(String::as_str));
            }
        }
    }
    (!roles.is_empty()).then_some(roles)
}

fn matches(descriptor: &str, event: &str) -> bool {
    let prefix = descriptor.strip_suffix(".*").or_else(|| descriptor.strip_suffix('*'));
    match prefix {
        Some("") => true,
        Some(prefix) => event.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        None => descriptor == event,
    }
}

/// Names of one kind: no two may become one.
struct Names {
    what: &'static str,
    taken: Vec<(String, String)>,
}

impl Names {
    fn new(what: &'static str) -> Names {
        Names { what, taken: Vec::new() }
    }
    fn add(&mut self, of: &str, name: String) -> Result<String, Error> {
        if let Some((_, first)) = self.taken.iter().find(|(n, _)| *n == name) {
            return Err(Error::SameName { what: self.what, first: first.clone(), second: of.to_owned(), name });
        }
        self.taken.push((name.clone(), of.to_owned()));
        Ok(name)
    }
}

fn states(out: &mut String, name: &str, whose: &str, root: &State) -> Result<(), Error> {
    let mut list: Vec<(String, String, Option<&str>)> = Vec::new();
    let mut names = Names::new("the states");
    // Depth first, in document order.
    let mut stack: Vec<(String, &State)> = root.states.iter().rev().map(|(k, s)| (k.clone(), s)).collect();
    while let Some((path, state)) = stack.pop() {
        if !matches!(
            state.kind,
            charter_kernel::definition::StateKind::Shallow | charter_kernel::definition::StateKind::Deep
        ) {
            list.push((names.add(&path, camel(&path))?, path.clone(), state.description.as_deref()));
        }
        stack.extend(state.states.iter().rev().map(|(k, s)| (format!("{path}.{k}"), s)));
    }
    let _ = writeln!(
        out,
        "/// The states of {whose}.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum {name} {{"
    );
    for (variant, path, about) in &list {
        doc(out, "    ", about.unwrap_or(&format!("`{path}`.")));
        let _ = writeln!(out, "    {variant},");
    }
    let _ = writeln!(out, "}}\n\nimpl {name} {{");
    let all: Vec<String> = list.iter().map(|(variant, ..)| format!("{name}::{variant}")).collect();
    let _ = writeln!(
        out,
        "    /// All of them, in document order.\n    pub const ALL: [{name}; {}] = [{}];\n",
        list.len(),
        all.join(", ")
    );
    let _ = writeln!(
        out,
        "    /// Its path in the charter.\n    #[must_use]\n    pub fn path(self) -> &'static str {{\n        match self {{"
    );
    for (variant, path, _) in &list {
        let _ = writeln!(out, "            {name}::{variant} => {path:?},");
    }
    let _ = writeln!(
        out,
        "        }}\n    }}\n\n    /// The state at a path.\n    #[must_use]\n    pub fn at(path: &str) -> Option<{name}> {{\n        {name}::ALL.into_iter().find(|s| s.path() == path)\n    }}\n}}\n"
    );
    Ok(())
}

fn event_enum(out: &mut String, events: &[EventFace<'_>]) {
    let _ = writeln!(out, "/// Any event that may be sent.\n#[derive(Debug, Clone, PartialEq)]\npub enum Event {{");
    for e in events {
        doc(out, "    ", e.about.unwrap_or(&format!("`{}`.", e.name)));
        let carries = e.carries.as_ref().map(|c| format!("({c})")).unwrap_or_default();
        let _ = writeln!(out, "    {}{carries},", e.variant);
    }
    let _ = writeln!(
        out,
        "}}\n\nimpl Event {{\n    /// Its type in the charter.\n    #[must_use]\n    pub fn kind(&self) -> &'static str {{\n        match self {{"
    );
    for e in events {
        let rest = if e.carries.is_some() { "(_)" } else { "" };
        let _ = writeln!(out, "            Event::{}{rest} => {:?},", e.variant, e.name);
    }
    let _ = writeln!(
        out,
        "        }}\n    }}\n\n    /// Its data, as JSON.\n    ///\n    /// # Errors\n    /// A number that JSON cannot say (not a number, infinite).\n    pub fn data(&self) -> Result<::serde_json::Value, ::serde_json::Error> {{\n        match self {{"
    );
    for e in events {
        if e.carries.is_some() {
            let _ = writeln!(out, "            Event::{}(data) => ::serde_json::to_value(data),", e.variant);
        } else {
            let _ = writeln!(
                out,
                "            Event::{} => Ok(::serde_json::Value::Object(::serde_json::Map::new())),",
                e.variant
            );
        }
    }
    let _ = writeln!(out, "        }}\n    }}\n}}\n");
}

fn handle(
    out: &mut String,
    name: &str,
    role: &str,
    about: Option<&str>,
    events: &[EventFace<'_>],
) -> Result<(), Error> {
    let _ = writeln!(out, "/// Acts as `{role}`{}", about.map_or_else(|| ".".into(), |a| format!(": {a}.")));
    let _ = writeln!(
        out,
        "#[derive(Debug)]\npub struct {name}<'d, D> {{\n    door: &'d mut D,\n    id: String,\n    to: Option<String>,\n}}\n\n\
         impl<'d, D: ::charter_typed::Door> {name}<'d, D> {{\n    /// The principal `id`, acting through a door.\n    pub fn new(door: &'d mut D, id: impl Into<String>) -> Self {{\n        Self {{ door, id: id.into(), to: None }}\n    }}\n\n\
         \x20   /// What follows is for the actor of that id, not for the root.\n    #[must_use]\n    pub fn to(self, actor: impl Into<String>) -> Self {{\n        Self {{ to: Some(actor.into()), ..self }}\n    }}\n"
    );
    let mut methods = Names::new("the events");
    for e in events.iter().filter(|e| e.by.as_ref().is_none_or(|by| by.contains(role))) {
        let mut method = snake(e.name);
        if matches!(method.as_str(), "new" | "to") {
            method.push('_');
        }
        let method = methods.add(e.name, method)?;
        doc(out, "    ", e.about.unwrap_or(&format!("Sends `{}`.", e.name)));
        let (argument, data) = match &e.carries {
            Some(kind) => (format!(", data: {kind}"), "::serde_json::to_value(data).unwrap_or_default()".to_owned()),
            None => (String::new(), "::serde_json::Value::Object(::serde_json::Map::new())".to_owned()),
        };
        let _ = writeln!(
            out,
            "    ///\n    /// # Errors\n    /// The host's refusal; nothing has changed.\n    pub fn {method}(&mut self{argument}) -> Result<D::Answer, D::Refusal> {{\n        \
             self.door.send(self.to.as_deref(), {:?}, {data}, &self.id, {role:?})\n    }}\n",
            e.name
        );
    }
    let _ = writeln!(out, "}}\n");
    Ok(())
}
