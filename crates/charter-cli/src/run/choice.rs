//! The choices of a person: events and tasks, and which of them agree or disagree.

use charter_expr::schema::SchemaNode;
use charter_kernel::{Demands, Legal, Principal, Schema, Timestamp};
use charter_runtime::{Task, View};
use serde_json::{Map, Value as Json, json};

use super::Who;
use super::approval_preview::ApprovalPreview;
use super::host::Host;
use crate::journal::offers;
use crate::journal::text::clean;

/// Something that a person can do now.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Send an event.
    Event(EventChoice),
    /// Answer a task.
    Task(TaskChoice),
    /// Decline a task, with a reason.
    Decline(TaskChoice),
}

impl Choice {
    /// The event: its type, its actor and its demands.
    pub(crate) fn event(&self) -> Option<(&str, &str, &Demands)> {
        match self {
            Choice::Event(e) => Some((&e.r#type, &e.to, &e.demands)),
            Choice::Task(_) | Choice::Decline(_) => None,
        }
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
    pub(super) demands: Box<Demands>,
}

/// An open task.
#[derive(Debug, Clone)]
pub(crate) struct TaskChoice {
    pub(crate) effect: String,
    pub(crate) by: Principal,
    pub(super) title: String,
    pub(super) input: Json,
    pub(super) schema: Option<Json>,
    /// Whether it is a call of a dry fork.
    pub(super) dry: bool,
}

/// Returns all choices.
pub(crate) fn all(view: &View, who: &Who, now: Timestamp) -> Vec<Choice> {
    let machine = view.charter.machine();
    let by = who.principal_in(machine, view.snapshot.run());
    let mut choices = Vec::new();
    for Task { effect, title, src, input, output, dry, .. } in view.tasks.iter().filter(|t| t.is_for(&by)).cloned() {
        choices.push(Choice::Task(TaskChoice {
            effect,
            by: by.clone(),
            title: if dry { format!("dry: {src} is not started; answer for it") } else { title.unwrap_or(src) },
            input,
            // The answer of an actor may be anything, and is not made up.
            schema: output.map(resolved).or_else(|| dry.then(anything)),
            dry,
        }));
    }
    for (Legal { to, r#type, data, description, .. }, demands) in offers::from(machine, &view.snapshot, &by, now) {
        // Who has voted is not asked for another vote.
        let has_voted = demands.quorum.iter().flat_map(|quorum| &quorum.votes).any(|voters| voters.contains(&by.id));
        if r#type.starts_with("charter.") || has_voted {
            continue;
        }
        choices.push(Choice::Event(EventChoice {
            by: by.clone(),
            schema: data.map(resolved),
            r#type,
            to,
            description,
            demands: Box::new(demands),
        }));
    }
    // Put approvals first; keep the others in the order of declaration.
    choices.sort_by_key(|c| !matches!(c, Choice::Event(e) if e.demands.approves.is_some()));
    choices
}

/// Whether somebody has to answer: a task, a call of a dry fork, or whether to approve.
pub(crate) fn is_needed(view: &View, now: Timestamp) -> bool {
    let approves = |offer: &offers::Offer| offer.demands.approves.is_some();
    !view.tasks.is_empty() || offers::all(view.charter.machine(), &view.snapshot, now).iter().any(approves)
}

/// Whether a choice can still be made as it was shown: the same event, approving the same value, or
/// the same task.
pub(crate) fn is_among(choice: &Choice, view: &View, who: &Who, now: Timestamp) -> bool {
    all(view, who, now).iter().any(|other| match (choice, other) {
        (Choice::Task(task) | Choice::Decline(task), Choice::Task(other)) => task.effect == other.effect,
        (Choice::Event(event), Choice::Event(other)) => {
            let is_same = (&event.r#type, &event.to) == (&other.r#type, &other.to);
            is_same && event.demands.approves == other.demands.approves
        }
        _ => false,
    })
}

/// The schema of a value that is asked for as JSON.
fn anything() -> Json {
    json!({"type": ["null", "boolean", "number", "string", "array", "object"]})
}

/// Returns a schema with its references and those of its properties resolved.
fn resolved(schema: Json) -> Json {
    let mut top = SchemaNode::within(&schema, &schema).resolved().json().clone();
    resolve(&mut top, &schema, 4);
    top
}

fn resolve(schema: &mut Json, whole: &Json, depth: u8) {
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut);
    for property in properties.into_iter().flatten().map(|(_, p)| p) {
        let target = SchemaNode::within(whole, property).resolved().json().clone();
        *property = target;
        // Its items refer to them.
        if let (Some(property), Some(definitions)) = (property.as_object_mut(), whole.get("$defs")) {
            property.entry("$defs").or_insert_with(|| definitions.clone());
        }
        if let Some(depth) = depth.checked_sub(1) {
            resolve(property, whole, depth);
        }
    }
}

/// Returns the value that an event approves, and its digest.
pub(super) fn approved(to: &str, demands: &Demands, view: &View, now: Timestamp) -> Option<(Json, String)> {
    let machine = view.charter.machine();
    let approval = demands.approves.as_ref()?;
    let query = machine.query(&approval.value).ok()?;
    let value = machine.ask(&view.snapshot, to, &query, now).ok()?;
    Some((value, approval.digest.to_string()))
}

/// Returns previews of the values that events approve: event type, digest and preview. An event is
/// given by its type, its actor and its demands.
pub(crate) fn previews<'c>(
    events: impl Iterator<Item = (&'c str, &'c str, &'c Demands)>,
    view: &View,
    host: &Host,
    now: Timestamp,
) -> Vec<(String, String, ApprovalPreview)> {
    let one = |(kind, to, demands): (&str, &str, &Demands)| {
        let (value, digest) = approved(to, demands, view, now)?;
        let preview = ApprovalPreview::of(&value, view, to, host)?;
        Some((kind.to_owned(), digest, preview))
    };
    events.filter_map(one).collect()
}

/// Whether an event agrees (`yes`) or disagrees, by what it approves and by its name.
fn agrees(kind: &str, demands: &Demands, yes: bool) -> bool {
    const AGREES: [&str; 7] = ["APPROVE", "ACCEPT", "CONFIRM", "YES", "ALLOW", "GRANT", "AGREE"];
    const DISAGREES: [&str; 8] = ["REJECT", "DENY", "DENIED", "DECLINE", "REFUSE", "NO", "DISAGREE", "VETO"];
    let words: Vec<String> = kind.split(|c: char| !c.is_alphanumeric()).map(str::to_uppercase).collect();
    let any = |list: &[&str]| words.iter().any(|w| list.iter().any(|l| w == l || (l.len() > 3 && w.starts_with(l))));
    match yes {
        true => demands.approves.is_some() || (any(&AGREES) && !any(&DISAGREES)),
        false => any(&DISAGREES),
    }
}

/// Says why [`agreeing`] has found nothing, although the run waits for a person; `None` if it does
/// not.
pub(crate) fn why_not_agreeing(
    choices: &[Choice],
    view: &View,
    who: &Who,
    yes: bool,
    now: Timestamp,
) -> Option<String> {
    let flag = if yes { "--yes" } else { "--no" };
    let needs_data = choices.iter().any(|choice| match choice {
        Choice::Task(_) => yes,
        Choice::Event(event) => agrees(&event.r#type, &event.demands, yes),
        Choice::Decline(_) => false,
    });
    if needs_data {
        return Some(format!("`{flag}` gives no answer that needs data; the commands below do"));
    }
    let machine = view.charter.machine();
    let by = who.principal_in(machine, view.snapshot.run());
    let (_, others) = offers::to(machine, &view.snapshot, &by, now);
    if let Some(offer) = others.into_iter().find(|offer| agrees(&offer.event.r#type, &offer.demands, yes)) {
        let barred = offers::barred(machine, &view.snapshot, &by, &[offer], now).into_iter().next()?;
        return Some(format!("`{flag}` does not send {}: {}", clean(&barred.kind), barred.why));
    }
    if let Some(task) = view.tasks.iter().find(|task| !task.is_for(&by)) {
        let title = clean(task.title.as_deref().unwrap_or(&task.src));
        return Some(format!("`{flag}` does not answer `{title}`: {} may not", clean(&by.id)));
    }
    let what = if yes { "agrees" } else { "disagrees" };
    (!choices.is_empty()).then(|| format!("`{flag}` finds no event that {what}; the commands below send the others"))
}

/// Finds the choice that agrees or disagrees, with its data. Returns `None` if there is none, or if
/// it needs unknown data.
pub(crate) fn agreeing(choices: &[Choice], yes: bool) -> Option<(Choice, Json)> {
    choices.iter().find_map(|choice| match choice {
        // Neither flag says what an actor would have answered.
        Choice::Task(task) if task.dry => None,
        // An answer is the person's own; only one that needs no data can be given for them.
        Choice::Task(task) if yes => needs_no_data(task.schema.as_ref()).then(|| (choice.clone(), json!({}))),
        Choice::Task(task) => Some((Choice::Decline(task.clone()), "declined with --no".into())),
        Choice::Event(event) if agrees(&event.r#type, &event.demands, yes) => {
            let mut data = plain_event(event, yes)?;
            if let (Json::Object(map), Some(approval)) = (&mut data, &event.demands.approves) {
                map.insert("digest".into(), approval.digest.to_string().into());
            }
            Some((choice.clone(), data))
        }
        Choice::Event(_) | Choice::Decline(_) => None,
    })
}

/// Whether a schema allows no data but the empty object.
pub(crate) fn has_no_other_data(schema: &Json) -> bool {
    let is_closed = schema.get("additionalProperties").is_some_and(|more| *more == false);
    let is_empty = |value: &Json| value.as_object().is_some_and(serde_json::Map::is_empty);
    let names_none = ["properties", "patternProperties"].iter().all(|key| schema.get(key).is_none_or(is_empty));
    schema.get("maxProperties").and_then(Json::as_u64) == Some(0)
        || schema.get("const").is_some_and(is_empty)
        || (is_closed && names_none)
}

/// Whether a task is answered by `{}`.
pub(super) fn needs_no_data(schema: Option<&Json>) -> bool {
    let schema = schema.map(Schema::compile);
    schema.is_none_or(|schema| schema.is_ok_and(|schema| schema.accepts(&json!({}))))
}

fn plain_event(event: &EventChoice, yes: bool) -> Option<Json> {
    let mut schema = event.schema.clone();
    // The digest is filled in automatically.
    if let Some(required) = schema.as_mut().and_then(|s| s.get_mut("required")).and_then(Json::as_array_mut) {
        required.retain(|r| event.demands.approves.is_none() || r != "digest");
    }
    plain(schema.as_ref(), yes)
}

/// Builds the data that a schema requires, if that is a reason at most, which then names the flag.
/// Anything else is for a person to say.
fn plain(schema: Option<&Json>, yes: bool) -> Option<Json> {
    let mut data = Map::new();
    let Some(schema) = schema else {
        return Some(Json::Object(data));
    };
    for name in required(schema) {
        let property = schema.pointer(&charter_expr::pointer::join("/properties", &name));
        let kind = property.and_then(|p| p.get("type")).and_then(Json::as_str);
        let value = match kind {
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
