//! Compares everything but transitions: declarations, states, limits.

use std::collections::BTreeSet;

use charter_kernel::Definition;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::words::order;
use super::{Change, ChangeEffect, Side};
use crate::model::{State, escape};

/// The parts of a state that are not transitions.
const STATE_KEYS: [&str; 9] = ["type", "id", "initial", "entry", "exit", "invoke", "data", "output", "tags"];

pub(super) fn compare(old: &Side<'_>, new: &Side<'_>, changes: &mut Vec<Change>) {
    let (a, b) = (old.definition, new.definition);
    named("role", "/roles", &a.roles, &b.roles, both(ChangeEffect::Allows, ChangeEffect::Forbids), changes);
    events(a, b, changes);
    let alters = both(ChangeEffect::Alters, ChangeEffect::Alters);
    named("guard", "/guards", &a.guards, &b.guards, alters, changes);
    named("action", "/actions", &a.actions, &b.actions, alters, changes);
    named("delay", "/delays", &a.delays, &b.delays, alters, changes);
    named("actor", "/actors", &a.actors, &b.actors, alters, changes);
    named("ledger kind", "/ledger", &a.ledger, &b.ledger, alters, changes);
    named("rule", "/rules", &a.rules, &b.rules, alters, changes);
    named("projection", "/projections", &a.projections, &b.projections, alters, changes);
    let locks = |d: &Definition| d.interlocks.iter().map(|l| (l.id.clone(), json(l))).collect::<IndexMap<_, _>>();
    let stricter = both(ChangeEffect::Forbids, ChangeEffect::Allows);
    named("interlock", "/interlocks", &locks(a), &locks(b), stricter, changes);
    let limits = |d: &Definition| match json(&d.limits) {
        Json::Object(map) => map.into_iter().collect::<IndexMap<_, _>>(),
        _ => IndexMap::new(),
    };
    let limit = |before: Option<&Json>, after: Option<&Json>| match (
        before.and_then(Json::as_u64),
        after.and_then(Json::as_u64),
    ) {
        (Some(before), Some(after)) if after > before => ChangeEffect::Allows,
        (Some(_), Some(_)) => ChangeEffect::Forbids,
        _ => ChangeEffect::Alters,
    };
    named("limit", "/limits", &limits(a), &limits(b), limit, changes);
    let strict = both(ChangeEffect::Alters, ChangeEffect::Alters);
    let whole = |d: &Definition| {
        IndexMap::from([
            ("id".to_owned(), json(&d.id)),
            ("strict".to_owned(), json(&d.strict)),
            ("stream".to_owned(), json(&d.stream)),
        ])
    };
    named("charter", "", &whole(a), &whole(b), strict, changes);
    charts(old, new, changes);
}

/// The effect of adding and of removing a part; changing it alters.
fn both(added: ChangeEffect, removed: ChangeEffect) -> impl Fn(Option<&Json>, Option<&Json>) -> ChangeEffect + Copy {
    move |before, after| match (before, after) {
        (None, _) => added,
        (_, None) => removed,
        _ => ChangeEffect::Alters,
    }
}

fn json(value: &impl Serialize) -> Json {
    // Serializing plain data cannot fail.
    serde_json::to_value(value).unwrap_or_default()
}

/// Compares two maps by key.
fn named<T: Serialize>(
    part: &'static str,
    at: &str,
    old: &IndexMap<String, T>,
    new: &IndexMap<String, T>,
    effect: impl Fn(Option<&Json>, Option<&Json>) -> ChangeEffect,
    changes: &mut Vec<Change>,
) {
    let all = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    for name in all {
        let (before, after) = (old.get(name).map(json), new.get(name).map(json));
        if before == after {
            continue;
        }
        let effect = effect(before.as_ref(), after.as_ref());
        let place = |there: bool| there.then(|| format!("{at}/{}", escape(name)));
        changes.push(Change {
            effect,
            part,
            name: name.clone(),
            key: None,
            at: (place(before.is_some()), place(after.is_some())),
            before,
            after,
            example: None,
        });
    }
}

/// Compares the events: who may send them, their schemas, and whether a paused run accepts them.
fn events(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    let added = both(ChangeEffect::Allows, ChangeEffect::Forbids);
    let all = old.events.keys().chain(new.events.keys().filter(|key| !old.events.contains_key(*key)));
    for name in all {
        let (before, after) = (old.events.get(name), new.events.get(name));
        let at = format!("/events/{}", escape(name));
        let (Some(before), Some(after)) = (before, after) else {
            let (before, after) = (before.map(json), after.map(json));
            changes.push(Change {
                effect: added(before.as_ref(), after.as_ref()),
                part: "event",
                name: name.clone(),
                key: None,
                at: (before.is_some().then(|| at.clone()), after.is_some().then(|| at.clone())),
                before,
                after,
                example: None,
            });
            continue;
        };
        let paused = match after.while_paused {
            true => ChangeEffect::Allows,
            false => ChangeEffect::Forbids,
        };
        let keys = [
            ("by", json(&before.by), json(&after.by), senders(&before.by, &after.by)),
            ("data", json(&before.data), json(&after.data), required(before.data.is_some(), after.data.is_some())),
            ("whilePaused", json(&before.while_paused), json(&after.while_paused), paused),
            (
                "unique",
                json(&before.unique),
                json(&after.unique),
                required(before.unique.is_some(), after.unique.is_some()),
            ),
        ];
        // The order of roles decides nothing.
        let same_roles = before.by.iter().collect::<BTreeSet<_>>() == after.by.iter().collect::<BTreeSet<_>>();
        let differs =
            |(key, before, after, _): &(&str, Json, Json, _)| before != after && !(same_roles && *key == "by");
        for (key, before, after, effect) in keys.into_iter().filter(differs) {
            changes.push(field("event", name, key, before, after, effect, &at, &at));
        }
    }
}

/// The effect of a change of the roles that may send something; none means anybody.
pub(super) fn senders(old: &[String], new: &[String]) -> ChangeEffect {
    let (before, after): (BTreeSet<&String>, BTreeSet<&String>) = (old.iter().collect(), new.iter().collect());
    match (before.is_empty(), after.is_empty()) {
        (true, _) => ChangeEffect::Forbids,
        (_, true) => ChangeEffect::Allows,
        _ if after.is_superset(&before) => ChangeEffect::Allows,
        _ if after.is_subset(&before) => ChangeEffect::Forbids,
        _ => ChangeEffect::Alters,
    }
}

/// The effect of a requirement that was there or is there.
pub(super) fn required(before: bool, after: bool) -> ChangeEffect {
    match (before, after) {
        (false, true) => ChangeEffect::Forbids,
        (true, false) => ChangeEffect::Allows,
        _ => ChangeEffect::Alters,
    }
}

/// A change of one key of a part.
#[allow(clippy::too_many_arguments)] // the parts of one value
pub(super) fn field(
    part: &'static str,
    name: &str,
    key: &'static str,
    before: Json,
    after: Json,
    effect: ChangeEffect,
    old_at: &str,
    new_at: &str,
) -> Change {
    let given = |value: Json| Some(value).filter(|v| !v.is_null());
    Change {
        effect,
        part,
        name: name.to_owned(),
        key: Some(key),
        before: given(before),
        after: given(after),
        at: (Some(old_at.to_owned()), Some(new_at.to_owned())),
        example: None,
    }
}

/// Compares the machines: their data, and their states without transitions.
fn charts(old: &Side<'_>, new: &Side<'_>, changes: &mut Vec<Change>) {
    let added = both(ChangeEffect::Allows, ChangeEffect::Forbids);
    let machines = |side: &Side<'_>| {
        side.model.charts.iter().skip(1).map(|c| (c.name.to_owned(), Json::Bool(true))).collect::<IndexMap<_, _>>()
    };
    named("machine", "/machines", &machines(old), &machines(new), added, changes);
    for a in &old.model.charts {
        let Some(b) = new.model.charts.iter().find(|b| b.name == a.name) else { continue };
        let keys = [
            ("input", json(&a.def.input), json(&b.def.input)),
            ("types.context", json(&a.def.context_schema), json(&b.def.context_schema)),
            ("output", json(&a.def.output), json(&b.def.output)),
            ("settles", json(&a.def.settles), json(&b.def.settles)),
        ];
        for (key, before, after) in keys.into_iter().filter(|(_, before, after)| before != after) {
            changes.push(field("machine", a.name, key, before, after, ChangeEffect::Alters, &a.at, &b.at));
        }
        let variable = both(ChangeEffect::Alters, ChangeEffect::Alters);
        let at = format!("{}/context", a.at);
        named("variable", &at, &a.def.context, &b.def.context, variable, changes);
        let states = |states: &[State<'_>]| {
            states.iter().map(|s| (s.path.to_owned(), (s.at.clone(), plain(s)))).collect::<IndexMap<_, _>>()
        };
        let (before, after) = (states(&a.states), states(&b.states));
        let all = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
        for path in all {
            let label = if a.name == "root" { path.clone() } else { format!("{}: {path}", a.name) };
            match (before.get(path), after.get(path)) {
                (Some((x, before)), Some((y, after))) => {
                    for key in STATE_KEYS {
                        let get = |map: &Map<String, Json>| map.get(key).cloned().unwrap_or_default();
                        let (before, after) = (get(before), get(after));
                        if before != after {
                            changes.push(field("state", &label, key, before, after, ChangeEffect::Alters, x, y));
                        }
                    }
                }
                (x, y) => changes.push(Change {
                    effect: added(x.map(|_| &Json::Null), y.map(|_| &Json::Null)),
                    part: "state",
                    name: label,
                    key: None,
                    before: None,
                    after: None,
                    at: (x.map(|(at, _)| at.clone()), y.map(|(at, _)| at.clone())),
                    example: None,
                }),
            }
        }
        let (was, is) = (order(&a.def.state), order(&b.def.state));
        if was != is && was.iter().collect::<BTreeSet<_>>() == is.iter().collect::<BTreeSet<_>>() {
            let alters = ChangeEffect::Alters;
            changes.push(field("machine", a.name, "order of the states", json(&was), json(&is), alters, &a.at, &b.at));
        }
    }
}

/// A state without its transitions and children.
fn plain(state: &State<'_>) -> Map<String, Json> {
    let mut def = charter_kernel::definition::State { states: IndexMap::new(), ..state.def.clone() };
    def.invoke.iter_mut().for_each(|i| {
        i.on_done.clear();
        i.on_error.clear();
    });
    let mut map = match json(&def) {
        Json::Object(map) => map,
        _ => Map::new(),
    };
    if let Some(kind) = map.remove("kind") {
        map.insert("type".into(), kind);
    }
    map
}
