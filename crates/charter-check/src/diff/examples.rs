//! Finds the events that show a change: the exploration of either version leads to the transition,
//! and the kernel replays the same events in the other one.

use std::sync::Arc;

use charter_kernel::{Machine, Snapshot, TakenKeys};
use serde_json::{Value as Json, json};

use super::{Change, Example, Side};
use crate::effort::{Effort, units};
use crate::explore::{Exploration, FUEL_PER_MOVE, Move, MoveKind, start, trace_of};
use crate::model::{Model, Trigger, escape, matches};

/// Upper limit of the changes for which examples are looked for.
const MAX_CHANGES: usize = 200;
/// Upper limit of the lists of events that are tried for one change.
const MAX_TRIES: usize = 256;
/// Upper limit of the constants of a change that are tried.
const MAX_CONSTANTS: usize = 32;
/// Upper limit of the values in the data of an event that are replaced.
const MAX_PLACES: usize = 32;
/// The moves of a list that are copied for a unit of fuel.
const MOVES_PER_UNIT: u64 = 8;
/// The bytes of variables that are copied for a unit of fuel.
const BYTES_PER_UNIT: u64 = 16;

pub(super) fn add(
    a: &Side<'_>,
    b: &Side<'_>,
    before: &Exploration,
    after: &Exploration,
    effort: &Effort,
    changes: &mut [Change],
) {
    for change in changes.iter_mut().take(MAX_CHANGES) {
        if effort.is_over() {
            break;
        }
        let (old, new) = change.at.clone();
        let mut tries = moves_to(&b.model, after, change, new.as_deref());
        tries.extend(moves_to(&a.model, before, change, old.as_deref()));
        let roles = roles(change);
        // Other values of variables show only a change of what is stored.
        let deep = change.key == Some("actions") || matches!(change.part, "action" | "variable");
        let mut all: Vec<Vec<Arc<Move>>> = Vec::new();
        let constants = constants(change);
        for moves in tries.into_iter().take(MAX_TRIES) {
            if effort.is_over() {
                break;
            }
            let known = all.len();
            all.extend(with_data(&moves, &constants, |event| approves(&a.model, event) || approves(&b.model, event)));
            all.extend(roles.iter().filter_map(|role| with_role(&moves, role)));
            if matches!(change.key, Some("quorum" | "approves" | "not_by" | "when")) {
                all.extend(with_earlier_senders(&moves));
            }
            let copies = units(all.len().saturating_sub(known).saturating_add(1));
            effort.spend(copies.saturating_mul(units(moves.len())) / MOVES_PER_UNIT);
            all.push(moves);
        }
        // The shortest one first; of the same length, in the order of the explorations.
        all.sort_by_key(Vec::len);
        let mut found = all
            .iter()
            .take(MAX_TRIES)
            .take_while(|_| !effort.is_over())
            .filter_map(|moves| shown(a.model.machine, b.model.machine, moves, deep, effort));
        change.example = found.next();
    }
}

/// The shortest lists of moves whose last one takes a transition that a change is about.
fn moves_to(model: &Model<'_>, explored: &Exploration, change: &Change, at: Option<&str>) -> Vec<Vec<Arc<Move>>> {
    let mut all = Vec::new();
    for (number, chart) in model.charts.iter().enumerate() {
        for (i, t) in chart.all() {
            let concerned = match change.part {
                "transition" | "timer" => at == Some(t.at),
                "event" => matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, &change.name))),
                "guard" => names(&t.def.guard, &change.name),
                "state" => at.is_some_and(|at| t.targets.iter().any(|s| chart.state(*s).at == at)),
                _ => false,
            };
            if !concerned {
                continue;
            }
            let taken = explored.taken.get(number).and_then(|of_chart| of_chart.get(i as usize));
            if let Some(Some((node, how))) = taken {
                let mut moves = match how.kind {
                    MoveKind::Start { .. } => Vec::new(),
                    _ => explored.predecessors.moves(*node),
                };
                moves.push(how.clone());
                all.push(moves);
            }
        }
    }
    all
}

/// Whether a guard refers to a named one.
fn names(guard: &Option<charter_kernel::definition::Guard>, name: &str) -> bool {
    use charter_kernel::definition::Guard;
    let mut stack: Vec<&Guard> = guard.iter().collect();
    while let Some(guard) = stack.pop() {
        match guard {
            Guard::Name(other) if other == name => return true,
            Guard::And(parts) | Guard::Or(parts) => stack.extend(parts),
            Guard::Not(inner) => stack.push(inner),
            Guard::Name(_) | Guard::Cel(_) => {}
        }
    }
    false
}

/// The roles that a change of `by` or of a quorum adds or takes away.
fn roles(change: &Change) -> Vec<String> {
    if !matches!(change.key, Some("by" | "quorum")) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for value in [&change.before, &change.after].into_iter().flatten() {
        let list = value.get("of").unwrap_or(value);
        match list {
            Json::Array(items) => found.extend(items.iter().filter_map(Json::as_str).map(str::to_owned)),
            Json::String(role) => found.push(role.clone()),
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a transition approves a value by the digest in the data of an event.
fn approves(model: &Model<'_>, event: &str) -> bool {
    let takes = |t: &Trigger<'_>| matches!(t, Trigger::On(d) if d.iter().any(|d| matches(d, event)));
    model.charts.iter().flat_map(|c| &c.transitions).any(|t| t.def.approves.is_some() && takes(&t.trigger))
}

/// The numbers and strings that the old and the new value of a change compare with, and the
/// neighbors of the numbers.
fn constants(change: &Change) -> Vec<Json> {
    // The text of an expression is no value.
    let is_expression = matches!(change.key, Some("when" | "guard" | "quorum" | "approves" | "not_by"));
    let mut found: Vec<Json> = Vec::new();
    let mut stack: Vec<&Json> = change.before.iter().chain(&change.after).collect();
    while let Some(value) = stack.pop() {
        match value {
            Json::Array(items) => stack.extend(items),
            Json::Object(map) => stack.extend(map.values()),
            Json::String(text) => {
                if !is_expression {
                    found.push(value.clone());
                }
                if let Ok(ast) = charter_expr::parse(text) {
                    crate::tree::visit(ast.root(), &mut |node| found.extend(crate::tree::literal_of(node)));
                }
            }
            other => found.push(other.clone()),
        }
    }
    let near = |n: i64| [n.saturating_sub(1), n, n.saturating_add(1)].map(Json::from);
    let mut all: Vec<Json> = Vec::new();
    for constant in found.into_iter().filter(|c| c.is_number() || c.is_string()) {
        let values = constant.as_i64().map_or_else(|| vec![constant.clone()], |n| near(n).to_vec());
        all.extend(values.into_iter().filter(|v| !all.contains(v)).collect::<Vec<_>>());
        if all.len() >= MAX_CONSTANTS {
            break;
        }
    }
    all
}

/// The same moves, with one value in the data of the last one replaced by a constant of its type;
/// not the digest of what it approves.
fn with_data(moves: &[Arc<Move>], constants: &[Json], approves: impl Fn(&str) -> bool) -> Vec<Vec<Arc<Move>>> {
    let Some((last, rest)) = moves.split_last() else { return Vec::new() };
    let (MoveKind::Send { data, .. } | MoveKind::Done { output: data, .. }) = &last.kind else { return Vec::new() };
    let is_approval = last.event_type().is_some_and(approves);
    let mut places: Vec<String> = Vec::new();
    let mut stack = vec![(String::new(), data.as_ref())];
    while let Some((at, value)) = stack.pop() {
        match value {
            Json::Object(map) => stack.extend(map.iter().map(|(k, v)| (format!("{at}/{}", escape(k)), v))),
            Json::String(_) if is_approval && at == "/digest" => {}
            Json::Number(_) | Json::String(_) if places.len() < MAX_PLACES => places.push(at),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for (place, constant) in places.iter().flat_map(|p| constants.iter().map(move |c| (p, c))) {
        let mut last = Move::clone(last);
        if let MoveKind::Send { data, .. } | MoveKind::Done { output: data, .. } = &mut last.kind
            && let Some(value) =
                Arc::make_mut(data).pointer_mut(place).filter(|v| v.is_number() == constant.is_number())
        {
            *value = constant.clone();
            all.push(rest.iter().cloned().chain([Arc::new(last)]).collect());
        }
    }
    all
}

/// The same moves, the last one sent by a principal with just one role.
fn with_role(moves: &[Arc<Move>], role: &str) -> Option<Vec<Arc<Move>>> {
    let (last, rest) = moves.split_last()?;
    let mut last = Move::clone(last);
    match &mut last.kind {
        MoveKind::Send { by, .. } => Arc::make_mut(by).roles = vec![role.to_owned()],
        _ => return None,
    }
    Some(rest.iter().cloned().chain([Arc::new(last)]).collect())
}

/// The same moves, the last one sent by each principal who has sent one before.
fn with_earlier_senders(moves: &[Arc<Move>]) -> Vec<Vec<Arc<Move>>> {
    let Some((last, rest)) = moves.split_last() else { return Vec::new() };
    let sender = |how: &Arc<Move>| match &how.kind {
        MoveKind::Send { by, .. } => Some(by.clone()),
        _ => None,
    };
    let Some(own) = sender(last) else { return Vec::new() };
    let mut ids: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for earlier in rest.iter().filter_map(sender).filter(|by| by.id != own.id) {
        if ids.contains(&earlier.id) {
            continue;
        }
        ids.push(earlier.id.clone());
        let mut last = Move::clone(last);
        if let MoveKind::Send { by, .. } = &mut last.kind {
            Arc::make_mut(by).id.clone_from(&earlier.id);
        }
        all.push(rest.iter().cloned().chain([Arc::new(last)]).collect());
    }
    all
}

/// Replays moves in both versions; an example if they differ at the last one, and not before.
fn shown(old: &Machine, new: &Machine, moves: &[Arc<Move>], deep: bool, effort: &Effort) -> Option<Example> {
    let (was, is) = (outcomes(old, moves, effort), outcomes(new, moves, effort));
    let differ = |(a, b): (&Outcome, &Outcome)| a.text != b.text || (deep && a.variables != b.variables);
    let differs = was.iter().zip(&is).position(differ)?;
    if differs.saturating_add(1) != moves.len() {
        return None;
    }
    let (was, is) = (was.get(differs)?, is.get(differs)?);
    let other = if was.text == is.text { ", with other values of variables" } else { "" };
    Some(Example::new(trace_of(moves), was.text.clone(), format!("{}{other}", is.text)))
}

/// What one version does with a move.
struct Outcome {
    text: String,
    variables: Json,
}

/// What one version does with each move, up to the first one that it refuses.
fn outcomes(machine: &Machine, moves: &[Arc<Move>], effort: &Effort) -> Vec<Outcome> {
    let mut at: Option<Snapshot> = None;
    let mut keys = TakenKeys::default();
    let mut all = Vec::new();
    for how in moves {
        let done = match (&how.kind, &at) {
            (MoveKind::Start { input, by }, None) => start(machine, input, by.as_deref(), how.at),
            (_, Some(snapshot)) => how.follow(machine, snapshot, &mut keys),
            (_, None) => break,
        };
        match done {
            Ok(next) => {
                let text = format!("{}: {}", next.verdict.word(), places(&next.snapshot));
                let variables = variables(&next.snapshot);
                let copied = charter_expr::json::memory(&variables) / BYTES_PER_UNIT;
                effort.spend(next.fuel.saturating_add(FUEL_PER_MOVE).saturating_add(copied));
                all.push(Outcome { text, variables });
                at = Some(next.snapshot);
            }
            Err(refused) => {
                effort.spend(refused.fuel.saturating_add(FUEL_PER_MOVE));
                all.push(Outcome { text: format!("refused: {}", refused.refusal.code), variables: Json::Null });
                break;
            }
        }
    }
    all
}

/// The active states of a run.
fn places(snapshot: &Snapshot) -> String {
    let actors = snapshot.actors().filter(|a| a.id() == "root" || a.state().next().is_some()).take(5);
    let one = actors.map(|actor| {
        let states: Vec<&str> = actor.state().collect();
        match actor.id() {
            "root" => states.join(" and "),
            id => format!("{} of `{id}`", states.join(" and ")),
        }
    });
    one.collect::<Vec<_>>().join(", ")
}

/// The variables of all actors.
fn variables(snapshot: &Snapshot) -> Json {
    let of = |a: &charter_kernel::Actor| json!([a.id(), a.variables().collect::<Vec<_>>()]);
    Json::Array(snapshot.actors().map(of).collect())
}
