//! The choices of a person: events and tasks, and which of them agree or disagree.

use charter_expr::schema::SchemaNode;
use charter_kernel::{Digest, Legal, Principal, Timestamp};
use charter_runtime::{Task, View};
use serde_json::{Map, Value as Json, json};

use super::Who;
use super::approval_preview::ApprovalPreview;
use super::host::Host;

/// Something that a person can do now.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Send an event.
    Event(EventChoice),
    /// Answer a task.
    Task(TaskChoice),
}

impl Choice {
    /// Whether the choice is that event, to that actor.
    pub(crate) fn is(&self, kind: &str, to: &str) -> bool {
        matches!(self, Choice::Event(e) if e.r#type == kind && e.to == to)
    }
}

/// A legal event.
#[derive(Debug, Clone)]
pub(crate) struct EventChoice {
    pub(crate) r#type: String,
    pub(crate) to: String,
    pub(crate) by: Principal,
    pub(super) description: Option<String>,
    pub(super) schema: Option<Json>,
    pub(super) approves: Option<String>,
}

/// An open task.
#[derive(Debug, Clone)]
pub(crate) struct TaskChoice {
    pub(crate) effect: String,
    pub(crate) by: Principal,
    pub(super) title: String,
    pub(super) input: Json,
    pub(super) schema: Option<Json>,
}

/// Returns all choices. A user who names no roles has all roles of the charter, because the run is
/// on their own machine.
pub(crate) fn all(view: &View, who: &Who, now: Timestamp) -> Vec<Choice> {
    let machine = view.charter.machine();
    let mut by = who.principal();
    if !who.has_roles() {
        by.roles = machine.definition().roles.keys().cloned().collect();
    }
    let mut choices = Vec::new();
    for Task { effect, title, src, input, output, .. } in view.tasks.iter().filter(|t| t.is_for(&by)).cloned() {
        choices.push(Choice::Task(TaskChoice {
            effect,
            by: by.clone(),
            title: title.unwrap_or(src),
            input,
            schema: output.map(resolved),
        }));
    }
    for Legal { to, r#type, data, description, .. } in machine.legal(&view.snapshot, &by, now) {
        if r#type.starts_with("charter.") {
            continue;
        }
        choices.push(Choice::Event(EventChoice {
            approves: approves(view, &to, &r#type),
            by: by.clone(),
            schema: data.map(resolved),
            r#type,
            to,
            description,
        }));
    }
    // Put approvals first; keep the others in the order of declaration.
    choices.sort_by_key(|c| !matches!(c, Choice::Event(e) if e.approves.is_some()));
    choices
}

/// Returns a schema with the references of its properties resolved.
fn resolved(mut schema: Json) -> Json {
    let whole = schema.clone();
    resolve(&mut schema, &whole, 4);
    schema
}

fn resolve(schema: &mut Json, whole: &Json, depth: u8) {
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut);
    for property in properties.into_iter().flatten().map(|(_, p)| p) {
        let target = SchemaNode::within(whole, property).resolved().json().clone();
        *property = target;
        if let Some(depth) = depth.checked_sub(1) {
            resolve(property, whole, depth);
        }
    }
}

/// Returns the expression that an event would approve in the current state.
fn approves(view: &View, to: &str, kind: &str) -> Option<String> {
    let machine = view.charter.machine();
    let actor = view.snapshot.actor(to)?;
    let core = serde_json::to_value(machine.definition()).ok()?;
    machine.transitions().find_map(|(of, name, at)| {
        let (state, rest) = name.rsplit_once("/on/")?;
        let events = rest.rsplit_once('/').map_or(rest, |(events, _)| events);
        let here = of == actor.machine()
            && actor.active().any(|active| active == state)
            && events.split([',', ' ']).any(|e| e == kind);
        let approves = core.pointer(at)?.get("approves")?.as_str()?;
        here.then(|| approves.to_owned())
    })
}

/// Returns the value that an event approves, and its digest.
pub(super) fn approved(event: &EventChoice, view: &View, now: Timestamp) -> Option<(Json, String)> {
    let machine = view.charter.machine();
    let query = machine.query(event.approves.as_ref()?).ok()?;
    let value = machine.ask(&view.snapshot, &event.to, &query, now).ok()?;
    let digest = Digest::of_json(&value).to_string();
    Some((value, digest))
}

/// Returns previews of the values that can be approved: event type, digest and preview.
pub(crate) fn previews(
    choices: &[Choice],
    view: &View,
    host: &Host,
    now: Timestamp,
) -> Vec<(String, String, ApprovalPreview)> {
    let one = |choice: &Choice| {
        let Choice::Event(event) = choice else {
            return None;
        };
        let (value, digest) = approved(event, view, now)?;
        let preview = ApprovalPreview::of(&value, view, &event.to, host)?;
        Some((event.r#type.clone(), digest, preview))
    };
    choices.iter().filter_map(one).collect()
}

/// Builds example data for an event on the command line: known values are filled in, the others are
/// placeholders.
pub(crate) fn example(choices: &[Choice], kind: &str, to: &str, view: &View, now: Timestamp) -> Json {
    let event = choices.iter().find_map(|c| match c {
        Choice::Event(e) if c.is(kind, to) => Some(e),
        _ => None,
    });
    let Some((event, schema)) = event.and_then(|e| Some((e, e.schema.as_ref()?))) else {
        return json!({});
    };
    let mut data = sample(schema);
    if let (true, Some((_, digest))) = (data.contains_key("digest"), approved(event, view, now)) {
        data.insert("digest".into(), digest.into());
    }
    Json::Object(data)
}

/// Builds the minimal data of a schema, with a placeholder for each required property.
fn sample(schema: &Json) -> Map<String, Json> {
    let mut data = Map::new();
    for name in required(schema) {
        let property = schema.get("properties").and_then(|p| p.get(&name));
        let word = |key: &str| property.and_then(|p| p.get(key));
        let first = word("enum").and_then(|e| e.get(0)).or(word("const"));
        let value = match (first, word("type").and_then(Json::as_str)) {
            (Some(first), _) => first.clone(),
            (None, Some("integer" | "number")) => 0.into(),
            (None, Some("boolean")) => true.into(),
            (None, Some("array")) => json!([]),
            (None, Some("object")) => Json::Object(property.map(sample).unwrap_or_default()),
            _ => "...".into(),
        };
        data.insert(name, value);
    }
    data
}

/// Finds the choice that agrees or disagrees, with its data. Returns `None` if there is none, or if
/// it needs unknown data.
pub(crate) fn agreeing(choices: &[Choice], yes: bool, view: &View, now: Timestamp) -> Option<(Choice, Json)> {
    const AGREES: [&str; 7] = ["APPROVE", "ACCEPT", "CONFIRM", "YES", "ALLOW", "GRANT", "AGREE"];
    const DISAGREES: [&str; 8] = ["REJECT", "DENY", "DENIED", "DECLINE", "REFUSE", "NO", "DISAGREE", "VETO"];
    let fits = |event: &EventChoice| {
        let words: Vec<String> = event.r#type.split(|c: char| !c.is_alphanumeric()).map(str::to_uppercase).collect();
        let any =
            |list: &[&str]| words.iter().any(|w| list.iter().any(|l| w == l || (l.len() > 3 && w.starts_with(l))));
        match yes {
            true => event.approves.is_some() || (any(&AGREES) && !any(&DISAGREES)),
            false => any(&DISAGREES),
        }
    };
    choices.iter().find_map(|choice| {
        let data = match choice {
            Choice::Task(task) if yes => plain(task.schema.as_ref(), true)?,
            Choice::Task(_) => json!({}),
            Choice::Event(event) if fits(event) => {
                let mut data = plain_event(event, yes)?;
                if let (Json::Object(map), Some((_, digest))) = (&mut data, approved(event, view, now)) {
                    map.insert("digest".into(), digest.into());
                }
                data
            }
            Choice::Event(_) => return None,
        };
        Some((choice.clone(), data))
    })
}

fn plain_event(event: &EventChoice, yes: bool) -> Option<Json> {
    let mut schema = event.schema.clone();
    // The digest is filled in automatically.
    if let Some(required) = schema.as_mut().and_then(|s| s.get_mut("required")).and_then(Json::as_array_mut) {
        required.retain(|r| event.approves.is_none() || r != "digest");
    }
    plain(schema.as_ref(), yes)
}

/// Builds the data that a schema requires, if yes or no determines it: booleans are the answer, and
/// a reason names the flag.
fn plain(schema: Option<&Json>, yes: bool) -> Option<Json> {
    let mut data = Map::new();
    let Some(schema) = schema else {
        return Some(Json::Object(data));
    };
    for name in required(schema) {
        let property = schema.pointer(&charter_expr::pointer::join("/properties", &name));
        let kind = property.and_then(|p| p.get("type")).and_then(Json::as_str);
        let value = match kind {
            Some("boolean") => Json::Bool(yes),
            Some("string") if ["reason", "feedback", "comment", "note"].contains(&name.as_str()) => {
                format!("answered with --{}", if yes { "yes" } else { "no" }).into()
            }
            _ => return None,
        };
        data.insert(name, value);
    }
    Some(Json::Object(data))
}

pub(super) fn required(schema: &Json) -> Vec<String> {
    let list = schema.get("required").and_then(Json::as_array);
    let names = list.into_iter().flatten().filter_map(Json::as_str);
    names.map(str::to_owned).collect()
}
