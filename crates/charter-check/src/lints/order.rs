//! Transitions that are never taken because an earlier transition of the same state always takes
//! precedence for the same event.

use charter_kernel::definition::Transition as Def;
use rustc_hash::FxHashMap;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Chart, Model, Transition, Trigger, is_platform, matches};

/// The transitions of a state by trigger and condition, so that those that can win over a later one
/// are found without looking at all others.
type Index<'m> = FxHashMap<(String, String), Vec<(usize, &'m Transition<'m>)>>;

/// Upper limit of the transitions with the same trigger and condition that are compared with a
/// later one. They differ in their roles; one that only the 65th of them shadows is not found.
const MAX_COMPARED: usize = 64;

pub(crate) fn shadowed(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for state in &chart.states {
            let mut index = Index::default();
            for (place, later) in state.transitions.iter().enumerate() {
                let later = chart.transition(*later);
                let winner = find_winner(chart, &index, later);
                for trigger in triggers(chart, later) {
                    let same = index.entry((trigger, condition(later.def, true, true))).or_default();
                    if same.len() < MAX_COMPARED {
                        same.push((place, later));
                    }
                }
                let Some(winner) = winner else { continue };
                let why = if winner.is_unconditional() { "has no condition" } else { "has the same condition" };
                let message = format!("this transition is never taken: `{}` is tried first and {why}", winner.name);
                let help = "move it before the other one, add a condition to the other one, or remove it";
                findings
                    .push(Finding::new(Severity::Warning, codes::SHADOWED_TRANSITION, later.at, message).help(help));
            }
        }
    }
}

/// Finds the first transition in the index that always takes precedence over a later one.
fn find_winner<'m>(chart: &Chart<'_>, index: &Index<'m>, later: &Transition<'_>) -> Option<&'m Transition<'m>> {
    // A condition that wins is the same, or the part of it that is given.
    let conditions = [(false, false), (false, true), (true, false), (true, true)];
    let conditions = conditions.map(|(guard, when)| condition(later.def, guard, when));
    let mut winner: Option<(usize, &'m Transition<'m>)> = None;
    for trigger in covering(chart, later) {
        for condition in &conditions {
            let same = index.get(&(trigger.clone(), condition.clone())).into_iter().flatten();
            let first = same.copied().find(|(_, e)| covers(chart, e, later) && wins(e.def, later.def));
            winner = winner.into_iter().chain(first).min_by_key(|(place, _)| *place);
        }
    }
    winner.map(|(_, winner)| winner)
}

/// The keys of a transition in the index.
fn triggers(chart: &Chart<'_>, t: &Transition<'_>) -> Vec<String> {
    match t.trigger {
        Trigger::On(descriptors) => descriptors.to_vec(),
        Trigger::After => vec![format!("after {}", after_key(chart, t).unwrap_or_default())],
        other => vec![format!("{other:?}")],
    }
}

/// The keys of all transitions that can cover a later one: each has a descriptor that covers its
/// first descriptor.
fn covering(chart: &Chart<'_>, later: &Transition<'_>) -> Vec<String> {
    let Trigger::On(descriptors) = later.trigger else {
        return triggers(chart, later);
    };
    let Some(first) = descriptors.first() else {
        return Vec::new();
    };
    let plain = first.strip_suffix(".*").unwrap_or(first);
    let dots = plain.match_indices('.').map(|(at, _)| at).chain([plain.len()]);
    let prefixes = dots.filter_map(|at| plain.get(..at)).map(|prefix| format!("{prefix}.*"));
    let mut keys: Vec<String> = [first.clone(), "*".to_owned()].into_iter().chain(prefixes).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The condition of a transition as a key, with its guard, with its `when`, or with both.
fn condition(def: &Def, guard: bool, when: bool) -> String {
    format!("{:?} {:?}", def.guard.as_ref().filter(|_| guard), def.when.as_ref().filter(|_| when))
}

/// Whether `earlier` is a candidate for every event that `later` is a candidate for.
pub(super) fn covers(chart: &Chart<'_>, earlier: &Transition<'_>, later: &Transition<'_>) -> bool {
    match (earlier.trigger, later.trigger) {
        (Trigger::On(e), Trigger::On(l)) => l.iter().all(|l| e.iter().any(|e| descriptor_covers(e, l))),
        (Trigger::After, Trigger::After) => after_key(chart, earlier) == after_key(chart, later),
        (e, l) => e == l,
    }
}

fn descriptor_covers(earlier: &str, later: &str) -> bool {
    match later.strip_suffix(".*") {
        None if later == "*" => earlier == "*",
        None => matches(earlier, later),
        Some(prefix) => match earlier {
            "*" => !is_platform(&format!("{prefix}.")),
            _ => earlier.ends_with(".*") && matches(earlier, prefix),
        },
    }
}

/// The pointer of the list that contains the transition. It identifies the key of `after`.
fn after_key<'t>(_: &Chart<'_>, t: &Transition<'t>) -> Option<&'t str> {
    t.at.rsplit_once('/').map(|(list, _)| list)
}

fn wins(earlier: &Def, later: &Def) -> bool {
    let by = earlier.by.is_empty() || (!later.by.is_empty() && later.by.iter().all(|r| earlier.by.contains(r)));
    let plain = earlier.approves.is_none() && earlier.requires.is_empty() && earlier.quorum.is_none();
    let free = earlier.guard.is_none() && earlier.when.is_none();
    let same = (earlier.guard.is_none() || earlier.guard == later.guard)
        && (earlier.when.is_none() || earlier.when == later.when);
    by && plain && (free || same)
}
