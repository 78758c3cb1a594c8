//! Compares the transitions: grouped by their state and what triggers them, then one by one.

use std::collections::BTreeSet;

use charter_kernel::definition::Delay;
use indexmap::IndexMap;
use serde_json::Value as Json;

use super::parts::{field, required, senders};
use super::{Change, ChangeEffect, Side};
use crate::model::{Chart, Transition, Trigger, invocation_id};

/// The transitions of a chart, by the path of their state and what triggers them.
type Groups<'m, 'd> = IndexMap<(String, String), Vec<&'m Transition<'d>>>;

/// Whether two transitions count as the same one.
type Same = fn(&Transition<'_>, &Transition<'_>) -> bool;

pub(super) fn compare(old: &Side<'_>, new: &Side<'_>, changes: &mut Vec<Change>) {
    let known = |name: &str| old.model.charts.iter().any(|c| c.name == name);
    let more = new.model.charts.iter().map(|c| c.name).filter(|name| !known(name));
    for machine in old.model.charts.iter().map(|c| c.name).chain(more) {
        let groups_of = |side: &Side<'_>| side.model.charts.iter().position(|c| c.name == machine);
        let of_old = groups_of(old).and_then(|i| old.model.charts.get(i)).map(groups).unwrap_or_default();
        let of_new = groups_of(new).and_then(|i| new.model.charts.get(i)).map(groups).unwrap_or_default();
        let keys = of_old.keys().chain(of_new.keys().filter(|key| !of_old.contains_key(*key)));
        for key in keys {
            let before = of_old.get(key).map_or(&[][..], Vec::as_slice);
            let after = of_new.get(key).map_or(&[][..], Vec::as_slice);
            let label = label(machine, key);
            let pairs = pair(before, after);
            let mut last = None;
            let mut moved = false;
            for (x, y) in &pairs {
                one(&label, x.and_then(|i| before.get(i)), y.and_then(|i| after.get(i)), changes);
                if let (Some(_), Some(y)) = (x, y) {
                    moved |= last.is_some_and(|last| y < last);
                    last = Some(y);
                }
            }
            if let (true, Some(x), Some(y)) = (moved, before.first(), after.first()) {
                // The first enabled one of a list is taken.
                let (x, y) = (x.at, y.at);
                let alters = ChangeEffect::Alters;
                changes.push(field("transition", &label, "order", Json::Null, Json::Null, alters, x, y));
            }
        }
    }
}

/// The pairs of states with a transition from one to the other, as `a -> b`.
pub(super) fn ways(side: &Side<'_>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for chart in &side.model.charts {
        let of = if chart.name == "root" { String::new() } else { format!("{}: ", chart.name) };
        for t in chart.transitions.iter().filter(|t| t.def.refuse.is_none()) {
            for target in t.targets {
                let name = |s: u32| match chart.state(s).path {
                    "" => "(the whole machine)",
                    path => path,
                };
                all.insert(format!("{of}{} -> {}", name(t.source), name(*target)));
            }
        }
    }
    all
}

fn label(machine: &str, (state, trigger): &(String, String)) -> String {
    let of = if machine == "root" { String::new() } else { format!("{machine}: ") };
    match state.as_str() {
        "" => format!("{of}{trigger}"),
        state => format!("{of}{state}, {trigger}"),
    }
}

fn groups<'m, 'd>(chart: &'m Chart<'d>) -> Groups<'m, 'd> {
    let mut groups: Groups<'_, '_> = IndexMap::new();
    for t in &chart.transitions {
        let state = chart.state(t.source);
        let key = (state.path.to_owned(), trigger(chart, t));
        groups.entry(key).or_default().push(t);
    }
    groups
}

/// What triggers a transition, as it is written: `on APPROVE`, `after 1h`.
fn trigger(chart: &Chart<'_>, t: &Transition<'_>) -> String {
    let state = chart.state(t.source).def;
    let id = |i: usize| state.invoke.get(i).map(invocation_id).unwrap_or_default().to_owned();
    match t.trigger {
        Trigger::On(events) => format!("on {}", events.join(" ")),
        Trigger::Always => "always".into(),
        Trigger::StateDone => "onDone".into(),
        Trigger::InvokeDone(i) => format!("onDone of {}", id(i)),
        Trigger::InvokeError(i) => format!("onError of {}", id(i)),
        Trigger::After => {
            let here = |a: &&charter_kernel::definition::After| a.transitions.iter().any(|x| std::ptr::eq(x, t.def));
            let after = state.after.iter().find(here);
            after.map_or_else(|| "after".into(), |a| format!("after {}", delay(&a.delay)))
        }
    }
}

fn delay(delay: &Delay) -> String {
    match delay {
        Delay::Ms(ms) => format!("{ms} ms"),
        Delay::Name(name) => name.clone(),
        Delay::Cel(cel) => format!("= {cel}"),
    }
}

/// Pairs old and new transitions of one group: equal ones first, then those with the same targets,
/// then the others in order. What remains was removed or added.
fn pair(before: &[&Transition<'_>], after: &[&Transition<'_>]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut partner: Vec<Option<usize>> = vec![None; before.len()];
    let mut free: Vec<bool> = vec![true; after.len()];
    let rounds: [Same; 3] = [|a, b| a.def == b.def, |a, b| a.def.target == b.def.target, |_, _| true];
    for same in rounds {
        for (x, place) in before.iter().zip(&mut partner).filter(|(_, place)| place.is_none()) {
            let found = after.iter().zip(&free).position(|(y, free)| *free && same(x, y));
            if let Some(taken) = found.and_then(|i| free.get_mut(i)) {
                (*taken, *place) = (false, found);
            }
        }
    }
    let removed_or_kept = partner.into_iter().enumerate().map(|(i, y)| (Some(i), y));
    let added = free.into_iter().enumerate().filter(|(_, free)| *free).map(|(i, _)| (None, Some(i)));
    removed_or_kept.chain(added).collect()
}

fn one(label: &str, before: Option<&&Transition<'_>>, after: Option<&&Transition<'_>>, changes: &mut Vec<Change>) {
    let json = |t: &Transition<'_>| serde_json::to_value(t.def).unwrap_or_default();
    let part = |t: &Transition<'_>| match t.trigger {
        Trigger::After => "timer",
        _ => "transition",
    };
    let (x, y) = match (before, after) {
        (Some(x), Some(y)) => (x, y),
        (None, None) => return,
        (x, y) => {
            let refuses = x.or(y).is_some_and(|t| t.def.refuse.is_some());
            // A transition that refuses forbids what others would accept.
            let effect = match (x.is_some(), refuses) {
                (false, false) | (true, true) => ChangeEffect::Allows,
                _ => ChangeEffect::Forbids,
            };
            changes.push(Change {
                effect,
                part: x.or(y).map_or("transition", |t| part(t)),
                name: label.to_owned(),
                key: None,
                before: x.map(|t| json(t)),
                after: y.map(|t| json(t)),
                at: (x.map(|t| t.at.to_owned()), y.map(|t| t.at.to_owned())),
                example: None,
            });
            return;
        }
    };
    let (a, b) = (x.def, y.def);
    let (was, is) = (json(x), json(y));
    let get = |value: &Json, key: &str| value.get(key).cloned().unwrap_or_default();
    let count = |q: &Option<charter_kernel::definition::Quorum>| q.as_ref().map_or(0, |q| q.count);
    let quorum = match (count(&a.quorum), count(&b.quorum)) {
        (was, is) if is > was => ChangeEffect::Forbids,
        (was, is) if is < was => ChangeEffect::Allows,
        _ => ChangeEffect::Alters,
    };
    let requires =
        match (b.requires.iter().all(|r| a.requires.contains(r)), a.requires.iter().all(|r| b.requires.contains(r))) {
            (true, false) => ChangeEffect::Allows,
            (false, true) => ChangeEffect::Forbids,
            _ => ChangeEffect::Alters,
        };
    let alters = ChangeEffect::Alters;
    let keys = [
        ("target", alters),
        ("by", senders(&a.by, &b.by)),
        ("guard", required(a.guard.is_some(), b.guard.is_some())),
        ("when", required(a.when.is_some(), b.when.is_some())),
        ("requires", requires),
        ("quorum", quorum),
        ("approves", required(a.approves.is_some(), b.approves.is_some())),
        ("not_by", required(a.not_by.is_some(), b.not_by.is_some())),
        ("agents", if b.agents { ChangeEffect::Allows } else { ChangeEffect::Forbids }),
        ("refuse", required(a.refuse.is_some(), b.refuse.is_some())),
        ("actions", alters),
        ("reenter", alters),
        ("parallel_domain", alters),
    ];
    for (key, effect) in keys {
        let (was, is) = (get(&was, key), get(&is, key));
        if was != is {
            changes.push(field(part(x), label, key, was, is, effect, x.at, y.at));
        }
    }
}
