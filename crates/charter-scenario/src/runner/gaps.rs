//! Finds transitions that no scenario takes, and proposes the skeleton of a scenario for each.
//!
//! A skeleton is tried out, from the start of a run or from where a scenario reaches its state: if
//! it does not take its transition, a comment in it says what to fill in.

use std::fmt::Write as _;

use charter_format::scenario::read_scenarios;
use charter_kernel::definition::{Guard, Invoke, Transition};
use charter_kernel::{Machine, Principal, Snapshot};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::cover::Cover;
use super::run::resume;
use super::{compile_expressions, run};
use crate::example::{self, Example};
use crate::session::{Saved, Session};

/// Upper limit of the votes in a skeleton.
const MAX_VOTES: u32 = 20;

/// How deeply named guards are replaced by what they stand for.
const MAX_NAMES: u8 = 4;

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
    let charter = Charter::new(machine);
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

/// A charter, and how its runs start.
struct Charter<'m> {
    machine: &'m Machine,
    /// The definition, which addresses refer to.
    json: Json,
    /// Sample input.
    input: Json,
    /// The snapshot of a run that starts with the sample input, or why it does not start.
    start: Result<Snapshot, String>,
}

impl<'m> Charter<'m> {
    fn new(machine: &'m Machine) -> Charter<'m> {
        let input = example::find(machine.definition().root.input.as_ref(), None).data;
        let start = match Session::start(machine, "run", input.clone(), 0) {
            Ok((session, _)) => Ok(session.snapshot().clone()),
            Err(explanation) => Err(explanation.message.clone()),
        };
        // Plain data with string keys can always be converted to JSON.
        let json = serde_json::to_value(machine.definition()).unwrap_or_default();
        Charter { machine, json, input, start }
    }

    /// Whether the transition refuses events and a scenario has covered this refusal.
    fn has_refused(&self, cover: &Cover, name: &str, at: &str) -> bool {
        cover.has_refused(name) && self.transition(at).is_some_and(|t| t.refuse.is_some())
    }

    fn transition(&self, at: &str) -> Option<Transition> {
        serde_json::from_value(self.json.pointer(at)?.clone()).ok()
    }

    /// The invocation whose answer selects the transition.
    fn invocation(&self, at: &str) -> Option<Invoke> {
        let (at, _) = at.rsplit_once("/on_")?;
        serde_json::from_value(self.json.pointer(at)?.clone()).ok()
    }

    /// Whether a state of the root is active at the start.
    fn starts_in(&self, state: &str) -> bool {
        let root = self.start.as_ref().ok().and_then(|snapshot| snapshot.actor("root"));
        root.is_some_and(|root| state.is_empty() || root.active().any(|active| active == state))
    }

    /// Runs a skeleton, from the start or `from` where a scenario is. The error says why it fails,
    /// or that it does not take its transition.
    fn try_out(&self, text: &str, from: Option<&Saved>, name: &str, at: &str) -> Result<(), String> {
        let file = read_scenarios(text, "skeleton.yaml").map_err(|e| e.to_string())?;
        let expressions = compile_expressions(&file).map_err(|e| e.to_string())?;
        let mut cover = Cover::default();
        for scenario in &file.scenarios {
            let failure = match from {
                Some(saved) => resume(&file, scenario, &expressions, saved.session(self.machine), &mut cover).err(),
                None => run(&file, scenario, &expressions, self.machine, &mut cover).failure.map(|f| f.message),
            };
            if let Some(failure) = failure {
                return Err(failure);
            }
        }
        match cover.has_taken(at) || cover.has_refused(name) {
            true => Ok(()),
            false => Err("another transition is taken".into()),
        }
    }
}

/// The skeleton of a scenario.
struct Skeleton {
    name: String,
    input: Option<String>,
    /// What to fill in.
    comments: Vec<String>,
    steps: Vec<String>,
    /// The step that expects the target of the transition.
    expect: Option<String>,
}

impl Skeleton {
    fn text(&self) -> String {
        let mut text = format!("name: {}\n", quoted(&self.name));
        if let Some(input) = &self.input {
            let _ = writeln!(text, "input: {input}");
        }
        text.push_str("steps:\n");
        for comment in &self.comments {
            let _ = writeln!(text, "  # {}", one_line(comment));
        }
        for step in self.steps.iter().chain(&self.expect) {
            let _ = writeln!(text, "  - {step}");
        }
        text
    }
}

fn proposal(charter: &Charter<'_>, cover: &Cover, machine: &str, name: &str, at: &str) -> String {
    let (source, key, what) = parts(name);
    let found = charter.transition(at).unwrap_or_default();
    let reached = cover.reached(machine, source);
    let id = match reached {
        Some(how) => how.actor.clone(),
        None => format!("ID_OF_A_{}", machine.to_uppercase().replace('-', "_")),
    };
    let (to, is_root) = match machine {
        "root" => (String::new(), true),
        _ => (format!(", to: {}", quoted(&id)), false),
    };
    let mut skeleton = Skeleton {
        name: title(source, key, what),
        input: Some(charter.input.to_string()).filter(|input| input != "{}"),
        comments: Vec::new(),
        steps: Vec::new(),
        expect: expected_state(
            source,
            &found,
            &if is_root { String::new() } else { format!("actor: {}, ", quoted(&id)) },
        ),
    };
    let comments = &mut skeleton.comments;
    let at_start = is_root && charter.starts_in(source);
    // Where the steps begin; `None`: not at a place that is known.
    let mut from = at_start.then_some(None);
    match (&charter.start, reached) {
        _ if at_start => {}
        (_, Some(how)) => {
            skeleton.input = Some(how.input.to_string()).filter(|input| input != "{}");
            from = Some(Some(&how.saved).filter(|_| how.line > 0));
            if how.line > 0 {
                comments.push(format!(
                    "Begin with the steps of {:?} up to line {} of {}, which reach `{source}`.",
                    how.scenario, how.line, how.file
                ));
            }
        }
        (Err(why), None) => comments.push(format!("Correct the `input`: {why}.")),
        (Ok(_), None) => comments.push(format!("Add the steps that reach `{source}`; no scenario does yet.")),
    }
    if !is_root && reached.is_none() {
        comments.push(format!("{id} stands for the id of an actor of the machine `{machine}`."));
    }
    let known = comments.len();
    match (key, what.rsplit_once('/')) {
        ("on", _) => skeleton.steps = sends(charter.machine, what, &to, &found, from.flatten(), comments),
        ("invoke", Some((id, answer))) => {
            let invoke = charter.invocation(at);
            let actor = invoke.and_then(|i| charter.machine.definition().actors.get(&i.src));
            match (actor, answer) {
                (None, _) => comments.push(format!("Add the steps that end the machine `{id}`.")),
                (Some(actor), "onDone") => {
                    let Example { data: output, fits } = example::find(actor.output.as_ref(), None);
                    if !fits {
                        comments.push(format!("Fill in an output of `{id}`: no data was found that fits its schema."));
                    }
                    skeleton.steps.push(format!("done: {{actor: {}, output: {output}{to}}}", quoted(id)));
                }
                (Some(_), _) => {
                    let error = "error: {code: unknown, message: why}";
                    skeleton.steps.push(format!("error: {{actor: {}, {error}{to}}}", quoted(id)));
                }
            }
        }
        ("after", _) => skeleton.steps.push(format!("tick: {}", quoted(what))),
        ("always", _) => comments.push("Add the steps that make its condition true.".into()),
        _ => comments.push(format!("Add the steps that complete `{source}`.")),
    }
    let comments = &mut skeleton.comments;
    let condition = condition(charter.machine, &found);
    let Some(from) = from.filter(|_| !skeleton.steps.is_empty()) else {
        comments
            .extend(condition.map(|condition| format!("Fill in values for which its condition holds: {condition}")));
        return skeleton.text();
    };
    if comments.len() > known {
        return skeleton.text();
    }
    let Err(mut why) = charter.try_out(&skeleton.text(), from, name, at) else {
        return skeleton.text();
    };
    // The run may be in other states in addition, or already further.
    if let Some(expect) = skeleton.expect.take() {
        match charter.try_out(&skeleton.text(), from, name, at) {
            Ok(()) => return skeleton.text(),
            Err(other) => why = other,
        }
        skeleton.expect = Some(expect);
    }
    skeleton.comments.push(format!("Fill in what is missing: {why}."));
    skeleton
        .comments
        .extend(condition.map(|condition| format!("Fill in values for which its condition holds: {condition}")));
    skeleton.text()
}

/// The step that expects the target, if the transition has one that is a plain name.
fn expected_state(source: &str, transition: &Transition, actor: &str) -> Option<String> {
    let [target] = transition.target.as_slice() else { return None };
    if target.starts_with(['.', '#']) || transition.refuse.is_some() {
        return None;
    }
    let parent = source.rsplit_once('.').map(|(parent, _)| format!("{parent}."));
    Some(format!("expect: {{{actor}state: {}}}", quoted(&format!("{}{target}", parent.unwrap_or_default()))))
}

/// The condition of a transition, with the expressions of named guards.
fn condition(machine: &Machine, transition: &Transition) -> Option<String> {
    let guards = &machine.definition().guards;
    let guard = transition.guard.as_ref().map(|guard| spelled_out(guard, guards, MAX_NAMES));
    let conditions: Vec<String> = guard.into_iter().chain(transition.when.clone()).collect();
    (!conditions.is_empty()).then(|| conditions.join(" && "))
}

fn spelled_out(guard: &Guard, guards: &IndexMap<String, Guard>, depth: u8) -> String {
    let below = |guard: &Guard| spelled_out(guard, guards, depth.saturating_sub(1));
    let joined = |list: &[Guard], by: &str| {
        let parts: Vec<String> = list.iter().map(|guard| format!("({})", below(guard))).collect();
        parts.join(by)
    };
    match guard {
        Guard::Cel(text) => text.clone(),
        Guard::Name(name) => match guards.get(name).filter(|_| depth > 0) {
            Some(named) => format!("{name}, which is {}", below(named)),
            None => name.clone(),
        },
        Guard::And(list) => joined(list, " && "),
        Guard::Or(list) => joined(list, " || "),
        Guard::Not(guard) => format!("!({})", below(guard)),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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

/// The steps that send an event: one for each principal that a quorum needs.
fn sends(
    machine: &Machine,
    kind: &str,
    to: &str,
    transition: &Transition,
    from: Option<&Saved>,
    comments: &mut Vec<String>,
) -> Vec<String> {
    let declared = machine.definition().events.get(kind);
    let Example { mut data, fits } = example::find(declared.and_then(|d| d.data.as_ref()), None);
    if !fits {
        comments.push(format!("Fill in the data of `{kind}`: none was found that fits its schema."));
    }
    // The steps before may have used the example.
    let has = |key: &Json| from.is_some_and(|saved| saved.has_key(kind, key));
    if machine.unique_key(kind, &data, &Principal::new("somebody", &[])).is_some_and(|key| has(&key)) {
        data = example::with_free_key(machine, kind, data.clone(), ("example", 2), &has).unwrap_or(data);
    }
    if let Some(value) = &transition.approves {
        let digest = format!("= digest({})", one_line(value)).into();
        match &mut data {
            Json::Object(data) => drop(data.insert("digest".into(), digest)),
            other => *other = Json::Object(Map::from_iter([("digest".into(), digest)])),
        }
    }
    let data = if data == json!({}) { String::new() } else { format!(", data: {data}") };
    let roles: Vec<String> =
        roles(declared.map_or(&[], |d| d.by.as_slice()), transition).iter().map(|r| quoted(r)).collect();
    let roles = match roles.is_empty() {
        true => String::new(),
        false => format!(", roles: [{}]", roles.join(", ")),
    };
    let step = |who: &str, rest: &str| {
        // A sender without roles is needed only to be somebody else.
        let named = !roles.is_empty() || transition.quorum.is_some() || transition.not_by.is_some();
        let who = if named { format!(", as: {who}{roles}") } else { String::new() };
        let (step, rest) = match &transition.refuse {
            Some(rule) => ("refused", format!(", code: rule, rule: {}", quoted(rule))),
            None => ("send", rest.to_owned()),
        };
        format!("{step}: {{type: {}{to}{data}{who}{rest}}}", quoted(kind))
    };
    let Some(quorum) = &transition.quorum else {
        // Four eyes: the other skeletons send as `someone`.
        return vec![step(if transition.not_by.is_some() { "someone-else" } else { "someone" }, "")];
    };
    if quorum.count > MAX_VOTES {
        comments.push(format!("Add votes: {} different people are needed.", quorum.count));
    }
    let count = quorum.count.min(MAX_VOTES);
    let vote = |n: u32| step(&format!("person-{n}"), if n < quorum.count { ", verdict: vote" } else { "" });
    (1..=count).map(vote).collect()
}

/// The roles that a sender needs for an event that these roles may send.
fn roles<'t>(declared: &'t [String], transition: &'t Transition) -> Vec<&'t str> {
    let by = &transition.by;
    let both = by.iter().find(|role| declared.contains(role));
    let mut roles: Vec<&str> = match both {
        Some(role) => vec![role],
        None => declared.first().into_iter().chain(by.first()).map(String::as_str).collect(),
    };
    let of = transition.quorum.as_ref().and_then(|quorum| quorum.of.as_deref());
    // The role of the quorum may suffice to send the event.
    if let Some(of) = of.filter(|of| !roles.contains(of)) {
        let enough = [declared, by].iter().all(|list| list.is_empty() || list.iter().any(|role| role == of));
        if enough {
            roles.clear();
        }
        roles.push(of);
    }
    roles
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
