//! Declarations that are never used, and events that are raised but never handled.

use charter_kernel::definition::{Action, BUILT_IN_ROLES, InterlockRule, PropertyRule, Template};
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::Item;
use crate::model::{Model, Transition, Trigger, escape, is_platform, matches};

/// Names that are used.
#[derive(Default)]
pub(crate) struct Used<'d> {
    pub(crate) guards: FxHashSet<&'d str>,
    pub(crate) actions: FxHashSet<&'d str>,
    delays: FxHashSet<&'d str>,
    /// The names of actors and machines.
    sources: FxHashSet<&'d str>,
    roles: FxHashSet<&'d str>,
}

pub(crate) fn used_names<'d>(model: &Model<'d>) -> Used<'d> {
    let mut used = Used::default();
    let mut texts: FxHashSet<String> = FxHashSet::default();
    model.visit_all(&mut |_, item| match item {
        Item::Guard(name) => drop(used.guards.insert(name)),
        Item::Block(name) => drop(used.actions.insert(name)),
        Item::Delay(name) => drop(used.delays.insert(name)),
        Item::Action(Action::Spawn { machine, .. }) => drop(used.sources.insert(machine)),
        Item::Cel(cel) => literals(model, cel, &mut texts),
        _ => {}
    });
    for cel in rules(model) {
        literals(model, cel, &mut texts);
    }
    for invoke in model.charts.iter().flat_map(|c| &c.states).flat_map(|s| &s.def.invoke) {
        used.sources.insert(invoke.src.as_str());
        let chosen = invoke.choose.iter().flat_map(|c| c.machines.values());
        used.sources.extend(chosen.map(String::as_str));
    }
    used.roles.extend(model.def.events.values().flat_map(|e| &e.by).map(String::as_str));
    for t in model.charts.iter().flat_map(|c| &c.transitions) {
        used.roles.extend(t.def.by.iter().map(String::as_str));
        used.roles.extend(t.def.quorum.iter().filter_map(|q| q.of.as_deref()));
    }
    // The roles under which an actor sends, and those that may answer it.
    let named = model.def.actors.values().flat_map(|a| ["as", "by"].map(|key| a.config.get(key))).flatten();
    used.roles.extend(
        named
            .flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
            .filter_map(Json::as_str),
    );
    // A role also counts as used if an expression contains its name: `'auditor' in by.roles`.
    used.roles.extend(model.def.roles.keys().map(String::as_str).filter(|r| texts.contains(*r)));
    used
}

/// The expressions of interlocks and properties.
pub(crate) fn rules<'d>(model: &Model<'d>) -> Vec<&'d str> {
    let locks = model
        .def
        .interlocks
        .iter()
        .filter_map(|l| if let InterlockRule::Assert(cel) = &l.rule { Some(cel.as_str()) } else { None });
    let properties = model.def.properties.iter().map(|p| match &p.rule {
        PropertyRule::Never { when, .. } => when.as_str(),
        PropertyRule::Always(cel) | PropertyRule::Eventually(cel) => cel.as_str(),
    });
    locks.chain(properties).collect()
}

/// The literal strings of an expression.
fn literals<'d>(model: &Model<'d>, cel: &'d str, texts: &mut FxHashSet<String>) {
    if let Some(ast) = model.ast(cel) {
        crate::tree::strings(ast.root(), &mut |text| {
            texts.insert(text.to_string());
        });
    }
}

pub(crate) fn names(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let used = used_names(model);
    let def = model.def;
    let mut report = |code: &'static str, section: &str, name: &str, what: &str| {
        let at = format!("/{section}/{}", escape(name));
        findings.push(
            Finding::new(Severity::Warning, code, at, format!("{what} `{name}` is never used"))
                .help("use it, or remove it"),
        );
    };
    def.guards
        .keys()
        .filter(|n| !used.guards.contains(n.as_str()))
        .for_each(|n| report(codes::UNUSED_GUARD, "guards", n, "guard"));
    def.actions
        .keys()
        .filter(|n| !used.actions.contains(n.as_str()))
        .for_each(|n| report(codes::UNUSED_ACTION, "actions", n, "action"));
    def.delays
        .keys()
        .filter(|n| !used.delays.contains(n.as_str()))
        .for_each(|n| report(codes::UNUSED_DELAY, "delays", n, "delay"));
    def.actors
        .keys()
        .filter(|n| !used.sources.contains(n.as_str()))
        .for_each(|n| report(codes::UNUSED_ACTOR, "actors", n, "actor"));
    def.machines
        .keys()
        .filter(|n| !used.sources.contains(n.as_str()))
        .for_each(|n| report(codes::UNUSED_MACHINE, "machines", n, "machine"));
    def.roles
        .keys()
        .filter(|n| !used.roles.contains(n.as_str()) && !BUILT_IN_ROLES.contains(&n.as_str()))
        .for_each(|n| report(codes::UNUSED_ROLE, "roles", n, "role"));
}

/// Reports named types that no schema uses.
pub(crate) fn types(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let def = model.def;
    let mut schemas: Vec<&Json> = def.events.values().filter_map(|e| e.data.as_ref()).collect();
    schemas.extend(def.actors.values().flat_map(|a| a.input.iter().chain(&a.output)));
    schemas.extend(model.charts.iter().flat_map(|c| c.def.input.iter().chain(&c.def.context_schema)));
    let mut referred: FxHashSet<&str> = FxHashSet::default();
    let mut waiting = schemas;
    while let Some(value) = waiting.pop() {
        match value {
            Json::Array(items) => waiting.extend(items),
            Json::Object(map) => {
                for (key, value) in map {
                    match value.as_str().filter(|_| key == "$ref") {
                        Some(text) => referred.extend(
                            text.strip_prefix("#/$defs/types.")
                                .or_else(|| text.strip_prefix("#/types/"))
                                .map(|n| n.split('/').next().unwrap_or(n)),
                        ),
                        None => waiting.push(value),
                    }
                }
            }
            _ => {}
        }
    }
    for name in def.types.keys().filter(|n| *n != "context" && !referred.contains(escape(n).as_ref())) {
        let message = format!("type `{name}` is never used");
        findings.push(
            Finding::new(Severity::Warning, codes::UNUSED_TYPE, format!("/types/{}", escape(name)), message)
                .help(format!("use it with `$ref: \"#/types/{name}\"`, or remove it")),
        );
    }
}

/// Reports declared events that no state handles.
pub(crate) fn events(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for name in model.def.events.keys() {
        if !is_handled(model, name) {
            let message = format!("no state handles `{name}`: it is always refused as `unhandled`");
            let help = "add a transition for it under `on`, or remove the event";
            findings.push(
                Finding::new(Severity::Warning, codes::UNUSED_EVENT, format!("/events/{}", escape(name)), message)
                    .help(help),
            );
        }
    }
}

fn is_handled(model: &Model<'_>, name: &str) -> bool {
    let takes = |t: &Transition<'_>| matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, name)));
    model.charts.iter().flat_map(|c| &c.transitions).any(takes)
}

/// Reports events that actions raise or send but no state handles.
pub(crate) fn raised(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let mut found: Vec<(String, String)> = Vec::new();
    model.visit_all(&mut |at, item| {
        let kind = match item {
            Item::Action(Action::Raise { r#type, .. }) => r#type,
            // An event with a `processor` (only in imported charters) leaves the run.
            Item::Action(Action::Send(send)) if send.processor.is_none() => &send.r#type,
            _ => return,
        };
        let Template::Literal(Json::String(name)) = kind else {
            return;
        };
        let platform = is_platform(name);
        if !platform && !is_handled(model, name) && !found.iter().any(|(a, _)| a == at) {
            found.push((at.to_string(), name.clone()));
        }
    });
    for (at, name) in found {
        let message = format!("`{name}` is raised here, but no state handles it");
        findings.push(
            Finding::new(Severity::Warning, codes::UNHANDLED_EVENT, at, message)
                .help("add a transition for it under `on`, or remove the action"),
        );
    }
}

/// Whether an action raises or sends an event that triggers this transition.
pub(crate) fn is_raised(model: &Model<'_>, t: &Transition<'_>) -> bool {
    let Trigger::On(descriptors) = t.trigger else {
        return false;
    };
    let mut found = false;
    model.visit_all(&mut |_, item| {
        let kind = match item {
            Item::Action(Action::Raise { r#type, .. }) => r#type,
            Item::Action(Action::Send(send)) => &send.r#type,
            _ => return,
        };
        found |= match kind {
            Template::Literal(Json::String(name)) => descriptors.iter().any(|d| matches(d, name)),
            _ => true,
        };
    });
    found
}
