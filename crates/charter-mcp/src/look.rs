//! A run at one moment, as an agent sees it: what every result tells.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use charter_guard::gate;
use charter_kernel::definition::Definition;
use charter_kernel::{Auth, Demands, Legal, Machine, Principal, PrincipalKind, Snapshot, Timestamp};
use charter_runtime::{RuntimeError, View};
use serde_json::{Map, Value as Json, json};

use crate::endpoint::Endpoint;

/// What the hook of a client says about tools; an agent must not say it for its client.
pub(crate) const OF_HOOKS: [&str; 2] = [gate::CALL, gate::RESULT];
/// Events that a result lists, at most.
const MAX_LISTED: usize = 200;
/// Things to wait for that a result lists, at most.
const MAX_WAITING: usize = 20;
/// An id that nobody has: who has voted or proposed is somebody else.
const SOMEBODY: &str = " somebody else ";

/// A run at one moment.
pub(crate) struct Look {
    pub(crate) view: View,
    /// What the agent may send.
    pub(crate) offers: Vec<Offer>,
    pub(crate) now: Timestamp,
    waiting: OnceLock<Vec<Json>>,
}

/// An event that the agent may send.
pub(crate) struct Offer {
    pub(crate) event: Legal,
    /// The conditions on its data.
    pub(crate) conditions: Vec<String>,
    /// The tool of its own, if it has one.
    pub(crate) tool: Option<String>,
}

impl Endpoint {
    /// Reads the run.
    pub(crate) async fn look(&self) -> Result<Look, RuntimeError> {
        let view = self.backend.view(self.run.clone()).await?;
        let now = self.clock.now();
        let machine = view.charter.machine();
        let mut offers = Vec::new();
        let legal = machine.legal(&view.snapshot, &self.by, now);
        let mut takers: BTreeMap<&str, u32> = BTreeMap::new();
        for event in &legal {
            let count = takers.entry(&event.r#type).or_default();
            *count = count.saturating_add(1);
        }
        for event in &legal {
            if OF_HOOKS.contains(&event.r#type.as_str()) {
                continue;
            }
            let demands = machine.demands(&view.snapshot, &event.to, &event.r#type, &self.by, now);
            if demands.as_ref().is_some_and(|demands| demands.persons_only) {
                continue;
            }
            // `send` names the actor if there are several.
            let own = self.tools.has_events() && takers.get(event.r#type.as_str()) == Some(&1);
            let tool = own.then(|| self.names.tool(&event.r#type)).flatten().map(str::to_owned);
            let conditions = demands.map(|demands| demands.conditions).unwrap_or_default();
            offers.push(Offer { event: event.clone(), conditions, tool });
        }
        Ok(Look { view, offers, now, waiting: OnceLock::new() })
    }
}

impl Look {
    pub(crate) fn machine(&self) -> &Machine {
        self.view.charter.machine()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.view.snapshot
    }

    /// The active states of the root actor.
    pub(crate) fn state(&self) -> Vec<&str> {
        self.snapshot().actor("root").iter().flat_map(|actor| actor.state()).collect()
    }

    /// The names of the tools for events, in order: what `tools/list_changed` is about.
    pub(crate) fn event_tools(&self) -> Vec<String> {
        self.offers.iter().filter_map(|offer| offer.tool.clone()).collect()
    }

    /// The members that every result has. `schemas`: with the schema of the data of each event.
    pub(crate) fn json(&self, schemas: bool) -> Map<String, Json> {
        let definition = self.machine().definition();
        let legal: Vec<Json> = self.offers.iter().take(MAX_LISTED).map(|offer| offer.json(schemas)).collect();
        let mut all = crate::endpoint::object(json!({
            "run": self.snapshot().run(),
            "charter": definition.id,
            "seq": self.snapshot().seq(),
            "status": self.snapshot().status().word(),
            "state": self.state(),
            "legal": legal,
            "waiting": self.waiting(),
        }));
        let more = self.offers.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            all.insert("more_legal".to_owned(), more.into());
        }
        all
    }

    /// What the run waits for that the agent cannot send: decisions and tasks of people, actors,
    /// timers.
    fn waiting(&self) -> &[Json] {
        self.waiting.get_or_init(|| self.all_waiting())
    }

    fn all_waiting(&self) -> Vec<Json> {
        let (machine, snapshot) = (self.machine(), self.snapshot());
        let mut all = Vec::new();
        let anyone = somebody(machine.definition());
        for event in machine.legal(snapshot, &anyone, self.now) {
            let demands = machine.demands(snapshot, &event.to, &event.r#type, &anyone, self.now);
            let Some(demands) = demands.filter(|demands| demands.persons_only) else { continue };
            all.push(decision(machine.definition(), &event, &demands));
        }
        for task in &self.view.tasks {
            let what = if task.dry { "answer" } else { "task" };
            all.push(json!({"for": what, "title": task.title, "actor": task.src, "by": task.by, "task": task.effect}));
        }
        for work in &self.view.working {
            all.push(json!({"for": "actor", "actor": work.src, "attempt": work.attempt}));
        }
        if let Some(due) = self.view.next_due {
            all.push(json!({"for": "timer", "due": charter_scenario::timestamp::text(due)}));
        }
        if self.view.untrusted {
            all.push(json!({"for": "trust", "title": "an operator has to allow the actors of this imported run"}));
        }
        all.truncate(MAX_WAITING);
        all
    }

    /// What can be done now, in a sentence.
    pub(crate) fn next_step(&self) -> String {
        if self.snapshot().status().is_finished() {
            return format!("The run is {}; nothing more can be sent.", self.snapshot().status().word());
        }
        let mut kinds: Vec<&str> = self.offers.iter().map(|offer| offer.event.r#type.as_str()).collect();
        kinds.dedup();
        let more = kinds.len().saturating_sub(12);
        kinds.truncate(12);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let waiting: Vec<String> = self.waiting().iter().map(waits_for).collect();
        match (kinds.is_empty(), waiting.is_empty()) {
            (false, true) => format!("Legal for you now: {}{more}.", kinds.join(", ")),
            (false, false) => {
                format!("Legal for you now: {}{more}. The run also waits for {}.", kinds.join(", "), waiting.join("; "))
            }
            (true, false) => format!(
                "Nothing is legal for you now: the run waits for {}. Tell the user, and read `status` again later.",
                waiting.join("; ")
            ),
            (true, true) => "Nothing is legal for you now: your roles do not take part in this state.".to_owned(),
        }
    }
}

/// A person with every role of the charter who has done nothing yet.
fn somebody(definition: &Definition) -> Principal {
    let roles = definition.roles.keys().cloned().collect();
    Principal { id: SOMEBODY.to_owned(), roles, kind: Some(PrincipalKind::Person), auth: Some(Auth::Key) }
}

fn decision(definition: &Definition, event: &Legal, demands: &Demands) -> Json {
    let by = definition.events.get(&event.r#type).map(|event| event.by.clone()).unwrap_or_default();
    let mut all = json!({"for": "person", "event": event.r#type, "to": event.to, "by": by});
    if let (Some(all), Some(approves)) = (all.as_object_mut(), &demands.approves) {
        all.insert("digest".to_owned(), approves.digest.to_string().into());
    }
    if let (Some(all), Some(quorum)) = (all.as_object_mut(), &demands.quorum) {
        all.insert("count".to_owned(), quorum.count.into());
    }
    all
}

/// An entry of `waiting`, in words.
fn waits_for(entry: &Json) -> String {
    let text = |name: &str| entry.get(name).and_then(Json::as_str).unwrap_or_default();
    let by: Vec<&str> =
        entry.get("by").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
    let by = if by.is_empty() { String::new() } else { format!(" with the role {}", by.join(" or ")) };
    match text("for") {
        "person" => format!("a person{by} to decide `{}`", text("event")),
        "task" => format!("a person{by} to answer the task of `{}`", text("actor")),
        "answer" => format!("an answer of `{}` (the run is dry)", text("actor")),
        "actor" => format!("the actor `{}`", text("actor")),
        "timer" => format!("a timer at {}", text("due")),
        _ => "an operator, who has to allow its actors".to_owned(),
    }
}

impl Offer {
    fn json(&self, schemas: bool) -> Json {
        let event = &self.event;
        let mut offer = json!({"type": event.r#type, "to": event.to, "depends_on_data": event.depends_on_data});
        let Some(members) = offer.as_object_mut() else { return offer };
        if let Some(tool) = &self.tool {
            members.insert("tool".to_owned(), tool.as_str().into());
        }
        if let Some(description) = &event.description {
            members.insert("description".to_owned(), description.as_str().into());
        }
        if !self.conditions.is_empty() {
            members.insert("conditions".to_owned(), self.conditions.clone().into());
        }
        if let Some(schema) = event.data.as_ref().filter(|_| schemas) {
            members.insert("data".to_owned(), schema.clone());
        }
        offer
    }
}
