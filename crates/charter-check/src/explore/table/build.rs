//! Builds the table of a charter.

use std::collections::BTreeSet;
use std::sync::Arc;

use charter_kernel::Principal;
use charter_kernel::definition::{Action, Block, StateKind, Template};
use serde_json::Value as Json;

use super::super::cone::Probes;
use super::super::data::samples;
use super::super::moves::{Move, MoveKind, START};
use super::{Label, LeafTransition, MAX_LEAVES, Table};
use crate::model::{Chart, Model, Trigger, is_platform, matches};

/// Builds the table of a charter; `None` if its behavior depends on more than the configuration.
pub(crate) fn table(model: &Model<'_>) -> Option<Table> {
    let [chart] = model.charts.as_slice() else {
        return None;
    };
    let def = model.def;
    if !def.interlocks.is_empty() || !def.properties.is_empty() || chart.def.output.is_some() {
        return None;
    }
    // Only literals are allowed, because evaluating them cannot fail.
    let plain = |t: &Template| matches!(t, Template::Literal(_));
    if !chart.def.context.values().all(plain) || !chart.states.iter().all(|s| simple_state(model, s.def)) {
        return None;
    }
    if !chart.transitions.iter().all(|t| simple_transition(model, t)) {
        return None;
    }
    let leaves: Vec<u32> = chart.leaves(0).collect();
    if leaves.is_empty() || leaves.len() > MAX_LEAVES {
        return None;
    }
    let root = chart.state(0).kind;
    let is_final = |s: &u32| chart.state(*s).kind == StateKind::Final;
    if root == StateKind::Parallel && leaves.iter().any(is_final) {
        return None; // the regions end the run only together
    }
    let input = samples(def.root.input.as_ref(), &Probes::new(), 1).values.pop()?;
    let mut table =
        Table { start: 0, finals: 0, labels: Vec::new(), transitions: Vec::new(), input, leaves, principals: 0 };
    table.start = table.bits(&entered(chart, &[0], None));
    for leaf in table.leaves.iter().filter(|l| is_final(l) && chart.state(**l).parent == Some(0)) {
        table.finals |= table.bit(*leaf);
    }
    for t in &chart.transitions {
        let known = chart.outline.transitions.get(table.transitions.len())?;
        let (exits, entries) = match known.domain {
            Some(domain) => {
                let below: Vec<u32> = chart.leaves(domain).filter(|l| *l != domain).collect();
                (table.bits(&below), table.bits(&entered(chart, t.targets, Some(domain))))
            }
            None if t.targets.is_empty() => (0, 0),
            None => return None,
        };
        let number = u32::try_from(table.transitions.len()).ok()?;
        table.transitions.push(LeafTransition { transition: number, source: t.source, exits, entries });
    }
    for (name, decl) in &def.events {
        let data = samples(decl.data.as_ref(), &Probes::new(), 1).values.pop()?;
        let senders = senders(model, chart, name);
        table.principals = table.principals.max(senders.len());
        for by in senders {
            table.label(chart, name, &data, by, &decl.by);
        }
    }
    // Labels are stored in 16 bits.
    (table.labels.len() < usize::from(u16::MAX)).then_some(table)
}

fn simple_state(model: &Model<'_>, s: &charter_kernel::definition::State) -> bool {
    let history = matches!(s.kind, StateKind::Shallow | StateKind::Deep);
    let blocks = s.entry.iter().chain(&s.exit).chain(s.initial.iter().map(|i| &i.actions));
    let done = s.output.as_ref().is_none_or(|t| matches!(t, Template::Literal(_)));
    !history
        && s.invoke.is_empty()
        && s.after.is_empty()
        && s.always.is_empty()
        && s.on_done.is_empty()
        && s.data.is_empty()
        && done
        && blocks.into_iter().all(|b| simple_block(model, b, 0))
}

fn simple_transition(model: &Model<'_>, t: &crate::model::Transition<'_>) -> bool {
    let Trigger::On(descriptors) = t.trigger else {
        return false;
    };
    let platform = descriptors.iter().any(|d| is_platform(d));
    // A charter that is not strict also accepts undeclared events, which the table does not cover.
    t.is_unconditional() && !platform && model.def.strict && simple_block(model, &t.def.actions, 0)
}

/// Whether all actions of a block only emit, log or store literals, and so cannot fail.
fn simple_block(model: &Model<'_>, block: &Block, depth: usize) -> bool {
    let literal = |t: &Template| matches!(t, Template::Literal(_));
    let text = |t: &Template| matches!(t, Template::Literal(Json::String(_)));
    depth < 110
        && block.iter().all(|a| match a {
            Action::Name(name) => {
                model.def.actions.get(name).is_some_and(|b| simple_block(model, b, depth.saturating_add(1)))
            }
            Action::Assign(list) => list.iter().all(|(path, value)| !path.contains(['.', '[']) && literal(value)),
            Action::Log { value, .. } => literal(value),
            Action::Emit { r#type, data } => text(r#type) && data.as_ref().is_none_or(literal),
            _ => false,
        })
}

/// Returns the leaves that are entered for the targets of a transition (appendix D,
/// `computeEntrySet`) after everything below its domain was exited.
fn entered(chart: &Chart<'_>, targets: &[u32], domain: Option<u32>) -> Vec<u32> {
    let mut entry = BTreeSet::new();
    for t in targets {
        descend(chart, *t, &mut entry);
    }
    for t in targets {
        ascend(chart, *t, domain, &mut entry);
    }
    entry.into_iter().filter(|s| matches!(chart.state(*s).kind, StateKind::Atomic | StateKind::Final)).collect()
}

fn touches(chart: &Chart<'_>, state: u32, entry: &BTreeSet<u32>) -> bool {
    entry.range(state..=chart.state(state).last).next().is_some()
}

fn descend(chart: &Chart<'_>, state: u32, entry: &mut BTreeSet<u32>) {
    entry.insert(state);
    let Some(known) = chart.outline.states.get(state as usize) else {
        return;
    };
    match known.kind {
        StateKind::Compound => {
            for t in known.initial {
                descend(chart, *t, entry);
            }
            for t in known.initial {
                ascend(chart, *t, Some(state), entry);
            }
        }
        StateKind::Parallel => regions(chart, state, entry),
        _ => {}
    }
}

fn regions(chart: &Chart<'_>, state: u32, entry: &mut BTreeSet<u32>) {
    for child in chart.outline.states.get(state as usize).into_iter().flat_map(|s| s.children) {
        if !touches(chart, *child, entry) {
            descend(chart, *child, entry);
        }
    }
}

fn ascend(chart: &Chart<'_>, state: u32, domain: Option<u32>, entry: &mut BTreeSet<u32>) {
    let mut up = chart.state(state).parent;
    while let Some(s) = up {
        let parallel = chart.state(s).kind == StateKind::Parallel;
        if Some(s) == domain {
            if parallel {
                regions(chart, s, entry);
            }
            break;
        }
        entry.insert(s);
        if parallel {
            regions(chart, s, entry);
        }
        up = chart.state(s).parent;
    }
}

/// Returns the senders that the charter can distinguish: one for each set of roles.
fn senders(model: &Model<'_>, chart: &Chart<'_>, event: &str) -> Vec<Principal> {
    let of_event = model.def.events.get(event).map(|e| e.by.as_slice()).unwrap_or_default();
    let takers =
        chart.transitions.iter().filter(|t| matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, event))));
    let mut sets: Vec<Vec<String>> = Vec::new();
    let mut add = |roles: Vec<String>| {
        if !roles.iter().any(|r| r == "system") && !sets.contains(&roles) {
            sets.push(roles);
        }
    };
    of_event.iter().for_each(|role| add(vec![role.clone()]));
    for role in takers.flat_map(|t| &t.def.by) {
        if of_event.is_empty() || of_event.contains(role) {
            add(vec![role.clone()]);
        } else {
            of_event.iter().for_each(|e| add(vec![e.clone(), role.clone()]));
        }
    }
    if of_event.is_empty() {
        add(Vec::new());
    }
    sets.into_iter().map(|roles| Principal { roles, ..Principal::new("ana", &[]) }).collect()
}

impl Table {
    /// Adds a label, unless an equivalent one exists.
    fn label(&mut self, chart: &Chart<'_>, event: &str, data: &Json, by: Principal, of_event: &[String]) {
        let admitted = |required: &[String]| required.is_empty() || required.iter().any(|r| by.roles.contains(r));
        if !admitted(of_event) {
            return;
        }
        let mut mask = 0;
        let mut offers = vec![u32::MAX; self.leaves.len()];
        for (leaf, offer) in self.leaves.iter().zip(&mut offers) {
            // The innermost state takes precedence, and in it the first transition that the sender
            // may take.
            let found = chart
                .upwards(*leaf)
                .flat_map(|s| chart.outline.candidates(s, event))
                .find(|t| admitted(&chart.transition(*t).def.by));
            if let Some(t) = found {
                *offer = t;
                mask |= self.bit(*leaf);
            }
        }
        if mask == 0 || self.labels.iter().any(|l| l.offers == offers) {
            return;
        }
        let kind =
            MoveKind::Send { to: "root".into(), kind: event.into(), data: Arc::new(data.clone()), by: Arc::new(by) };
        self.labels.push(Label { how: Arc::new(Move { at: START, kind }), mask, offers });
    }
}
