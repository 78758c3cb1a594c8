//! Finds transitions that no scenario takes, and proposes the skeleton of a scenario for each.

use charter_expr::schema::SchemaNode;
use charter_kernel::Machine;
use charter_kernel::definition::{Definition, Transition};
use serde_json::Value as Json;

use super::cover::Cover;

/// A transition that no scenario takes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    /// The machine; `root` for the run's own statechart.
    pub machine: String,
    /// Name of the transition, such as `review/on/APPROVE/0`.
    pub transition: String,
    /// Address of the transition in the core form of the charter.
    #[serde(skip)]
    pub at: String,
    /// The skeleton of a scenario that takes the transition, as YAML.
    pub proposal: String,
}

/// Returns the transitions that no scenario takes, in document order.
#[must_use]
pub fn gaps(machine: &Machine, cover: &Cover) -> Vec<Gap> {
    let charter = Charter {
        definition: machine.definition(),
        // Plain data with string keys can always be converted to JSON.
        json: serde_json::to_value(machine.definition()).unwrap_or_default(),
    };
    let open =
        machine.transitions().filter(|(_, name, at)| !cover.has_taken(at) && !charter.has_refused(cover, name, at));
    open.map(|(of, name, at)| Gap {
        machine: of.into(),
        transition: name.into(),
        at: at.into(),
        proposal: proposal(&charter, cover, of, name, at),
    })
    .collect()
}

/// A definition and its JSON, which addresses refer to.
struct Charter<'d> {
    definition: &'d Definition,
    json: Json,
}

impl Charter<'_> {
    /// Whether the transition refuses events and a scenario has covered this refusal.
    fn has_refused(&self, cover: &Cover, name: &str, at: &str) -> bool {
        cover.has_refused(name) && self.transition(at).is_some_and(|t| t.refuse.is_some())
    }

    fn transition(&self, at: &str) -> Option<Transition> {
        serde_json::from_value(self.json.pointer(at)?.clone()).ok()
    }
}

fn proposal(charter: &Charter<'_>, cover: &Cover, machine: &str, name: &str, at: &str) -> String {
    let (source, key, what) = parts(name);
    let mut text = format!("name: {}\n", quoted(&title(source, key, what)));
    let reached = cover.reached(machine, source);
    text.push_str("steps:\n");
    match reached {
        Some(how) if how.line == 0 => {}
        Some(how) => text.push_str(&format!(
            "  # As in {:?}, up to line {} of {}, which reaches `{source}`.\n",
            how.scenario, how.line, how.file
        )),
        None => text.push_str(&format!("  # Add the steps that reach `{source}`; no scenario does yet.\n")),
    }
    let to = match machine {
        "root" => String::new(),
        machine => format!(", to: ID_OF_A_{}", machine.to_uppercase().replace('-', "_")),
    };
    let found = charter.transition(at);
    text.push_str(&match (key, what.rsplit_once('/')) {
        ("on", _) => send(charter.definition, what, &to, found.as_ref()),
        ("invoke", Some((id, "onDone"))) => {
            format!("  - done: {{actor: {}, output: {{}}}}\n", quoted(id))
        }
        ("invoke", Some((id, _))) => {
            let error = "error: {code: unknown, message: why}";
            format!("  - error: {{actor: {}, {error}}}\n", quoted(id))
        }
        ("after", _) => format!("  - tick: {}\n", quoted(what)),
        ("always", _) => "  # Add the steps that make its condition true.\n".to_owned(),
        _ => format!("  # Add the steps that complete `{source}`.\n"),
    });
    let targets: Vec<String> = found.map(|t| t.target).unwrap_or_default();
    let plain = |t: &String| !t.starts_with(['.', '#']);
    if let [target] = targets.as_slice()
        && plain(target)
    {
        let parent = source.rsplit_once('.').map(|(parent, _)| format!("{parent}."));
        let actor = match machine {
            "root" => String::new(),
            _ => format!("{}, ", to.trim_start_matches(", ").replacen("to", "actor", 1)),
        };
        let path = format!("{}{target}", parent.unwrap_or_default());
        text.push_str(&format!("  - expect: {{{actor}state: {}}}\n", quoted(&path)));
    }
    text
}

/// Splits a name such as `review/on/APPROVE/0` into source, key and trigger.
fn parts(name: &str) -> (&str, &str, &str) {
    let keys = ["on", "invoke", "after", "always", "onDone"];
    let marked = keys.iter().filter_map(|key| {
        let place = name.find(&format!("/{key}/"))?;
        Some((place, *key))
    });
    let Some((place, key)) = marked.min() else {
        return (name, "", "");
    };
    let source = name.get(..place).unwrap_or_default();
    let rest = name.get(place + key.len() + 2..).unwrap_or_default();
    (source, key, rest.rsplit_once('/').map_or("", |(what, _)| what))
}

fn title(source: &str, key: &str, what: &str) -> String {
    let place = if source.is_empty() { String::new() } else { format!(" in {source}") };
    match key {
        "on" | "invoke" => format!("{}{place}", what.replace('/', " ")),
        "after" => format!("{what} pass{place}"),
        _ => format!("completion{place}"),
    }
}

fn send(definition: &Definition, kind: &str, to: &str, transition: Option<&Transition>) -> String {
    let declared = definition.events.get(kind);
    let by = |roles: &[String]| roles.first().cloned();
    let role = transition.and_then(|t| by(&t.by)).or_else(|| declared.and_then(|d| by(&d.by)));
    let data = declared.and_then(|d| d.data.as_ref()).map(sample);
    let data = data.filter(|d| d != "{}").map(|d| format!(", data: {d}"));
    let who = role.map(|role| format!(", as: someone, roles: [{}]", quoted(&role)));
    format!("  - send: {{type: {}{to}{}{}}}\n", quoted(kind), data.unwrap_or_default(), who.unwrap_or_default())
}

/// Formats the required fields of a schema with placeholder values.
fn sample(schema: &Json) -> String {
    let schema = SchemaNode::new(schema);
    let value = |field: &str| {
        let property = schema.property(field).map(SchemaNode::resolved);
        let word = |key: &str| property.and_then(|p| p.get(key));
        if let Some(first) = word("enum").and_then(Json::as_array).and_then(|e| e.first()) {
            return first.to_string();
        }
        match word("type").and_then(Json::as_str) {
            Some("string") => "text".into(),
            Some("integer" | "number") => "1".into(),
            Some("boolean") => "true".into(),
            Some("array") => "[]".into(),
            Some("object") => "{}".into(),
            _ => "null".to_string(),
        }
    };
    let fields: Vec<String> = schema.required().map(|f| format!("{}: {}", quoted(f), value(f))).collect();
    format!("{{{}}}", fields.join(", "))
}

/// Formats a string for YAML, with quotes where necessary.
fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c))
        && !text.ends_with(' ')
        && !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    let number = text.parse::<f64>().is_ok();
    if plain && !number { text.to_owned() } else { Json::from(text).to_string() }
}
