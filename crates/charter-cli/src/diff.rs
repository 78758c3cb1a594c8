//! `charter diff`: what may happen in one version of a charter that cannot in another.

use std::fmt::Write as _;

use charter_check::{Change, ChangeEffect, Diff, Options, PropertyChange, Verdict, Version, diff};
use charter_format::Diagnostic;
use charter_kernel::Digest;
use serde_json::{Value as Json, json};

use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};
use crate::load::{Loaded, load};

/// Maximum number of characters of a value in the text output.
const MAX_VALUE: usize = 160;

/// Compares two versions of a charter: what may happen now that could not before, and the other way
/// round. Exit code 0: no change of behavior, 1: a change, 2: trouble
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The old version: a charter, or the name of a bundled one
    #[arg(value_name = "OLD")]
    old: String,
    /// The new version
    #[arg(value_name = "NEW")]
    new: String,
    /// Print Markdown, for a comment on a pull request
    #[arg(long)]
    markdown: bool,
    /// Compare only; look for no examples, and give no verdicts of properties
    #[arg(long)]
    no_explore: bool,
    /// Upper limit for the states to explore in each version
    #[arg(long, value_name = "N", default_value_t = Options::default().max_states, allow_negative_numbers = true, value_parser = whole::<usize>)]
    max_states: usize,
}

/// Runs the command.
///
/// # Errors
/// A charter cannot be read or contains errors.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if args.markdown && machine_output {
        return Err(Failure::with_help("`--markdown` and `--json` exclude each other", "omit one of them"));
    }
    let (old, new) = (load(&args.old)?, load(&args.new)?);
    let options = Options { explore: !args.no_explore, max_states: args.max_states, ..Options::default() };
    let found = diff(version(&old), version(&new), &options);
    let text = match machine_output {
        true => json_of(&found, &old, &new).to_string(),
        false => Page {
            markdown: args.markdown,
            paint: Paint(io.color_out && !args.markdown),
            old: &old,
            new: &new,
            explored: !args.no_explore,
        }
        .print(&found),
    };
    writeln!(io.out, "{}", text.trim_end())?;
    Ok(if found.same { Exit::Yes } else { Exit::No })
}

fn version(loaded: &Loaded) -> Version<'_> {
    Version { document: &loaded.document, machine: &loaded.machine }
}

/// The line of a part in a version.
fn line(loaded: &Loaded, at: Option<&str>) -> Option<usize> {
    let at = at.filter(|at| !at.is_empty())?;
    let place = loaded.document.placed(at, None, Diagnostic::warning("", Default::default(), ""));
    Some(place.line).filter(|line| *line > 0)
}

fn json_of(found: &Diff, old: &Loaded, new: &Loaded) -> Json {
    let changes: Vec<Json> = found
        .changes
        .iter()
        .map(|change| {
            let mut value = serde_json::to_value(change).unwrap_or_default();
            if let Some(map) = value.as_object_mut() {
                map.remove("at");
                let (x, y) = (change.at.0.as_deref(), change.at.1.as_deref());
                map.insert("lines".into(), json!({"old": line(old, x), "new": line(new, y)}));
            }
            value
        })
        .collect();
    let side = |side: &Option<(String, Option<Verdict>)>| {
        side.as_ref().map(|(rule, verdict)| json!({"rule": rule, "verdict": verdict}))
    };
    let property = |p: &PropertyChange| json!({"id": p.id, "old": side(&p.old), "new": side(&p.new)});
    json!({
        "same": found.same,
        "changes": changes,
        "ways": {"added": found.ways_added, "removed": found.ways_removed},
        "properties": found.properties.iter().map(property).collect::<Vec<_>>(),
    })
}

/// The output for people.
struct Page<'p> {
    markdown: bool,
    paint: Paint,
    old: &'p Loaded,
    new: &'p Loaded,
    explored: bool,
}

impl Page<'_> {
    fn print(&self, found: &Diff) -> String {
        let mut out = String::new();
        let names = format!("{} -> {}", self.old.name, self.new.name);
        let _ = match self.markdown {
            true => writeln!(out, "### `{names}`\n"),
            false => writeln!(out, "{}\n", self.paint.strong(&names)),
        };
        let groups = [
            (ChangeEffect::Allows, "May happen now, could not before"),
            (ChangeEffect::Forbids, "Could happen before, cannot now"),
            (ChangeEffect::Alters, "Happens differently"),
        ];
        for (effect, title) in groups {
            let of_group: Vec<&Change> = found.changes.iter().filter(|c| c.effect == effect).collect();
            if of_group.is_empty() {
                continue;
            }
            self.title(&mut out, title);
            of_group.iter().for_each(|change| self.change(&mut out, change));
            out.push('\n');
        }
        self.list(&mut out, "New ways from state to state", &found.ways_added);
        self.list(&mut out, "Ways that are gone", &found.ways_removed);
        let properties: Vec<String> = found.properties.iter().map(|p| self.property(p)).collect();
        self.list(&mut out, "Properties", &properties);
        if found.same {
            out.push_str("no change of behavior: the definitions differ at most in words and in properties\n");
        }
        out
    }

    fn title(&self, out: &mut String, title: &str) {
        let _ = match self.markdown {
            true => writeln!(out, "**{title}**\n"),
            false => writeln!(out, "{}:", self.paint.strong(title)),
        };
    }

    fn list(&self, out: &mut String, title: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.title(out, title);
        for item in items {
            let _ = match self.markdown {
                true => writeln!(out, "- {item}"),
                false => writeln!(out, "  {item}"),
            };
        }
        out.push('\n');
    }

    fn change(&self, out: &mut String, change: &Change) {
        let sign = match (&change.key, &change.at) {
            (None, (None, Some(_))) if self.markdown => "added:",
            (None, (Some(_), None)) if self.markdown => "gone:",
            _ if self.markdown => "changed:",
            (None, (None, Some(_))) => "+",
            (None, (Some(_), None)) => "-",
            _ => "~",
        };
        let key = change.key.map(|key| format!(": {key}")).unwrap_or_default();
        let lines = match (line(self.old, change.at.0.as_deref()), line(self.new, change.at.1.as_deref())) {
            (None, None) => String::new(),
            (Some(old), None) => format!(" (line {old} of the old)"),
            (None, Some(new)) => format!(" (line {new} of the new)"),
            (Some(old), Some(new)) if old == new => format!(" (line {new})"),
            (Some(old), Some(new)) => format!(" (line {old}, now {new})"),
        };
        let value = match (&change.before, &change.after) {
            (None, None) => String::new(),
            (Some(before), None) => format!(" {}", value(before)),
            (None, Some(after)) => format!(" {}", value(after)),
            (Some(before), Some(after)) => format!(" {} -> {}", value(before), value(after)),
        };
        let what = format!("{sign} {} `{}`{key}", change.part, change.name);
        let _ = match (self.markdown, value.trim()) {
            (true, "") => writeln!(out, "- {what}{lines}"),
            (true, value) => writeln!(out, "- {what}{lines} ``{value}``"),
            (false, _) => writeln!(out, "  {what}{lines}{value}"),
        };
        let indent = if self.markdown { "  " } else { "      " };
        let bullet = if self.markdown { "- " } else { "" };
        match &change.example {
            Some(example) => {
                for event in &example.events {
                    let _ = writeln!(out, "{indent}{bullet}{}", self.code(&with_algorithm(event).to_string()));
                }
                let _ = writeln!(out, "{indent}{bullet}before: {}; now: {}", example.old, example.new);
            }
            None if self.explored => {
                let _ = writeln!(out, "{indent}{bullet}no example was found");
            }
            None => {}
        }
    }

    fn code(&self, text: &str) -> String {
        match self.markdown {
            true => format!("`{text}`"),
            false => text.to_owned(),
        }
    }

    fn property(&self, change: &PropertyChange) -> String {
        let verdict = |verdict: &Option<Verdict>| match verdict {
            Some(Verdict::Proved) => "proved",
            Some(Verdict::Violated) => "violated",
            Some(Verdict::Undecided) => "not decided",
            None => "not checked",
        };
        match (&change.old, &change.new) {
            (Some((rule, _)), None) => format!("- `{}` is gone: {}", change.id, self.code(rule)),
            (None, Some((rule, v))) => format!("+ `{}` ({}): {}", change.id, verdict(v), self.code(rule)),
            (Some((was, x)), Some((is, y))) if was == is => {
                format!("~ `{}`: {} -> {}", change.id, verdict(x), verdict(y))
            }
            (Some((was, x)), Some((is, y))) => {
                format!("~ `{}`: {} ({}) -> {} ({})", change.id, self.code(was), verdict(x), self.code(is), verdict(y))
            }
            (None, None) => String::new(),
        }
    }
}

/// An event with the digest that it approves as it is written everywhere else. An approval takes
/// both forms.
fn with_algorithm(event: &Json) -> Json {
    let mut event = event.clone();
    if let Some(digest) = event.pointer_mut("/data/digest")
        && let Some(known) = digest.as_str().filter(|text| !text.contains(':')).and_then(Digest::parse)
    {
        *digest = known.to_string().into();
    }
    event
}

/// A value on one line.
fn value(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
