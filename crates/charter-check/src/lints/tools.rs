//! Tools of models: events that the charter never accepts from the actor.

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Model, Transition, Trigger, escape, matches};

/// Reports events in `tools` that the roles of the actor do not allow.
pub(crate) fn not_allowed(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for (name, actor) in model.def.actors.iter().filter(|(_, actor)| actor.kind == "model") {
        let roles = texts(actor.config.get("as"));
        for (event, at) in tools(actor) {
            let Some(needed) = lacks(model, event, &roles) else { continue };
            let has = match roles.as_slice() {
                [] => "has no role".to_owned(),
                roles => format!("has only the role {}", roles.join(" and ")),
            };
            let (why, help) = match needed.as_slice() {
                [] => ("only persons approve and vote".to_owned(), "say `agents: true` at the transition".to_owned()),
                needed => (
                    format!("it requires the role {}, and the actor {has}", needed.join(" or ")),
                    format!("give the actor the role with `as` under `actors.{name}`"),
                ),
            };
            let message = format!("the model of `{name}` can never send `{event}`: {why}");
            let at = format!("/actors/{}/config/tools/{at}", escape(name));
            findings.push(
                Finding::new(Severity::Error, codes::TOOL_NOT_ALLOWED, at, message)
                    .help(format!("remove it from `tools`, or {help}")),
            );
        }
    }
}

/// The events of `tools`, each with its place.
fn tools(actor: &ActorDecl) -> Vec<(&str, String)> {
    match actor.config.get("tools") {
        Some(Json::Array(list)) => {
            list.iter().enumerate().filter_map(|(index, event)| Some((event.as_str()?, index.to_string()))).collect()
        }
        Some(Json::Object(map)) => map.keys().map(|event| (event.as_str(), escape(event).to_string())).collect(),
        _ => Vec::new(),
    }
}

/// The roles of which one is required and none is there, or no roles if persons only may send the
/// event; `None`: nothing is lacking.
fn lacks<'m>(model: &'m Model<'_>, event: &str, roles: &[&str]) -> Option<Vec<&'m str>> {
    let decl = model.def.events.get(event)?;
    let has = |by: &[String]| by.is_empty() || by.iter().any(|role| roles.contains(&role.as_str()));
    if !has(&decl.by) {
        return Some(decl.by.iter().map(String::as_str).collect());
    }
    let listens = |t: &&Transition<'_>| matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, event)));
    let votes = |t: &Transition<'_>| {
        let of = t.def.quorum.as_ref().and_then(|quorum| quorum.of.as_deref());
        of.is_none_or(|role| roles.contains(&role))
    };
    let for_persons = |t: &Transition<'_>| !t.def.agents && (t.def.approves.is_some() || t.def.quorum.is_some());
    let (mut needed, mut is_taken) = (Vec::new(), false);
    for t in model.charts.iter().flat_map(|chart| &chart.transitions).filter(listens) {
        if has(&t.def.by) && votes(t) && !for_persons(t) {
            return None;
        }
        is_taken = true;
        needed.extend(t.def.by.iter().map(String::as_str).filter(|_| !has(&t.def.by)));
        needed.extend(t.def.quorum.iter().filter(|_| !votes(t)).filter_map(|quorum| quorum.of.as_deref()));
    }
    needed.sort_unstable();
    needed.dedup();
    is_taken.then_some(needed)
}

fn texts(value: Option<&Json>) -> Vec<&str> {
    let list = value.map_or(&[][..], |value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
    list.iter().filter_map(Json::as_str).collect()
}
