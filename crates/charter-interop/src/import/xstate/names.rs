//! The names that stand for functions in a config: guards, actions, actors and delays, which the
//! importing charter declares.

use std::fmt::Write as _;

use charter_format::import::{Import, Section};
use charter_format::source::Span;
use charter_format::{Diagnostic, codes};

use super::XstateReader;

/// Upper limit of the names of one kind in the help of a message.
const MAX_LISTED: usize = 40;

/// The kinds of names: the word for one, the key under which a charter declares them, the value of
/// an example, and a comment on it.
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("guard", "guards", "\"false\"", "  # never holds: write the condition"),
    ("action", "actions", "[]", ""),
    ("actor", "actors", "{kind: scripted, answers: [{when: \"= true\", output: {}}]}", ""),
    ("delay", "delays", "1s", ""),
];

/// A name that the charter does not declare.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Missing {
    what: &'static str,
    name: String,
}

impl XstateReader<'_> {
    /// Checks that the charter declares a name; remembers it otherwise.
    pub(super) fn declared(&mut self, what: &'static str, name: &str, span: Span) -> bool {
        let d = &self.definition;
        let known = match what {
            "guard" => d.guards.contains_key(name),
            "action" => d.actions.contains_key(name),
            "delay" => d.delays.contains_key(name),
            _ => d.actors.contains_key(name) || d.machines.contains_key(name),
        };
        if !known {
            self.missing.entry(Missing { what, name: name.to_owned() }).or_insert(span);
        }
        known
    }

    fn known(&self, what: &str) -> Vec<&str> {
        let d = &self.definition;
        match what {
            "guard" => d.guards.keys().map(String::as_str).collect(),
            "action" => d.actions.keys().map(String::as_str).collect(),
            "delay" => d.delays.keys().map(String::as_str).collect(),
            _ => d.actors.keys().chain(d.machines.keys()).map(String::as_str).collect(),
        }
    }

    /// Reports each undeclared name once. The first message without a suggestion, or else the first
    /// one, has the lines that declare all of them. `name` is the file of the config.
    pub(super) fn report_missing(&mut self, name: &str, import: Option<&Import<'_>>) {
        let mut missing: Vec<(Missing, Span)> = std::mem::take(&mut self.missing).into_iter().collect();
        missing.sort_by_key(|(_, span)| span.start);
        let near: Vec<Option<&str>> =
            missing.iter().map(|(m, _)| charter_expr::nearest(&m.name, self.known(m.what))).collect();
        let all: Vec<(&Missing, Option<&str>)> = missing.iter().map(|(m, _)| m).zip(near.iter().copied()).collect();
        let mut skeleton = Some(skeleton(&all, name, import));
        let first = near.iter().position(Option::is_none).unwrap_or(0);
        let problems = missing.iter().zip(near).enumerate().map(|(i, ((Missing { what, name }, span), near))| {
            let mut problem = Diagnostic::error(codes::UNDEFINED, *span, format!("undefined {what} `{name}`"));
            problem.help = near.map(|near| format!("did you mean `{near}`?"));
            if let Some((help, paste)) = skeleton.take_if(|_| i == first) {
                let help = match &problem.help {
                    Some(near) => format!("{near} Otherwise, {help}"),
                    None => help.to_owned(),
                };
                (problem.help, problem.paste) = (Some(help), Some(paste));
            }
            problem
        });
        for problem in problems.collect::<Vec<_>>() {
            self.cx.report(problem);
        }
    }
}

/// Writes the part of a charter that declares names: what it is, and the lines to paste. The
/// entries of a key that the charter has already follow on their own. Each name may have the
/// declared one that it resembles.
fn skeleton(missing: &[(&Missing, Option<&str>)], file: &str, import: Option<&Import<'_>>) -> (&'static str, String) {
    let mut lines = String::new();
    let help = match import {
        Some(_) => "declare the names of the config in the importing charter, for example with these lines",
        None => "import the config into a charter that declares its names, for example this one",
    };
    if import.is_none() {
        let id = super::charter_id(file);
        let _ = write!(lines, "charter: 1\nid: {id}\nstatechart: {{import: {}, format: xstate}}", plain(file));
    }
    let mut added = String::new();
    for (what, key, example, comment) in KINDS {
        let names: Vec<(&str, Option<&str>)> =
            missing.iter().filter(|(m, _)| m.what == what).map(|(m, near)| (m.name.as_str(), *near)).collect();
        if names.is_empty() {
            continue;
        }
        let (out, indent, comma) = match import.and_then(|import| import.section(key)) {
            None => {
                let _ = write!(lines, "\n{key}:");
                (&mut lines, 2, "")
            }
            Some(Section { line, indent: Some(indent) }) => {
                let _ = write!(added, "\n\nunder `{key}` in line {line}:\n");
                (&mut added, indent, "")
            }
            Some(Section { line, indent: None }) => {
                let _ = write!(added, "\n\nafter the `{{` of `{key}` in line {line}:\n");
                (&mut added, 2, ",")
            }
        };
        for (name, near) in names.iter().take(MAX_LISTED) {
            let near = near.map(|near| format!("  # or `{near}`, if that is meant")).unwrap_or_default();
            let _ = write!(out, "\n{:indent$}{}: {example}{comma}{comment}{near}", "", plain(name));
        }
        if let Some(more) = names.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            let _ = write!(out, "\n{:indent$}# and {more} more", "");
        }
    }
    (help, (lines + &added).trim_start_matches('\n').to_owned())
}

/// Writes a YAML scalar, in quotes if it may need them.
fn plain(text: &str) -> String {
    let simple = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if simple { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
