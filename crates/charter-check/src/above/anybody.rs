//! Actors that are spawned under an id that is not known: any number of them. A search follows one
//! of them, whichever it is, and leaves the others out.
//!
//! That covers everything if the others can neither act on what is followed nor be seen from there:
//! they only restrict it, by interlocks and by the ids that they take. A property may ask whether
//! there is one actor with something forbidden, because whichever it is, it is the one that some
//! path follows.

use charter_expr::ast::{Kind, LinkKind, MacroName, Node, UnaryOp};
use charter_kernel::definition::{Action, InterlockRule, PropertyRule, Template};
use rustc_hash::FxHashSet;

use crate::explore::{Obstacle, condition_of};
use crate::model::Model;
use crate::model::walk::Item;
use crate::tree;

const OTHERS: &str = "only one of the actors whose ids are computed was followed, and others may matter";

/// Whether actors are spawned under computed ids.
pub(super) fn spawns(model: &Model<'_>) -> bool {
    !machines(model).is_empty()
}

/// The machines that are spawned under computed ids.
fn machines<'d>(model: &Model<'d>) -> FxHashSet<&'d str> {
    let mut out = FxHashSet::default();
    model.visit_all(&mut |_, item| {
        if let Item::Action(Action::Spawn { machine, id, .. }) = item
            && !matches!(id, Template::Literal(_))
        {
            out.insert(machine.as_str());
        }
    });
    out
}

/// The first way in which an actor that is left out may matter to what is followed.
pub(super) fn uncovered(model: &Model<'_>) -> Option<Obstacle> {
    let machines = machines(model);
    if machines.is_empty() {
        return None;
    }
    let mut found: Option<Obstacle> = None;
    for (i, lock) in model.def.interlocks.iter().enumerate() {
        if let InterlockRule::Table { given, .. } = &lock.rule
            && given != "root"
        {
            found.get_or_insert_with(|| Obstacle::new(&format!("/interlocks/{i}"), OTHERS));
        }
    }
    let known = |to: &Template| matches!(to, Template::Literal(to) if matches!(to.as_str(), Some("self" | "parent" | "root" | "#_internal")));
    for chart in &model.charts {
        let spawned = machines.contains(chart.name);
        let mut action = |at: &str, item: Item<'_>| {
            let matters = match item {
                Item::Action(Action::Stop(_)) => true,
                Item::Action(Action::Send(send)) => {
                    !send.to.as_ref().is_none_or(known)
                        || spawned
                            && send.to.as_ref().is_some_and(|to| !matches!(to, Template::Literal(l) if l == "self"))
                }
                Item::Action(Action::Spawn { .. }) => spawned,
                _ => false,
            };
            if matters {
                found.get_or_insert_with(|| Obstacle::new(at, OTHERS));
            }
        };
        for state in &chart.states {
            model.visit_state(state.def, &state.at, &mut action);
        }
        for t in &chart.transitions {
            model.visit_block(&t.def.actions, &format!("{}/actions", t.at), &mut action);
        }
        for state in chart.states.iter().filter(|_| spawned) {
            let machine = |invoke: &charter_kernel::definition::Invoke| {
                invoke.choose.is_some() || model.chart_of(&invoke.src).is_some()
            };
            if state.def.invoke.iter().any(machine) {
                found.get_or_insert_with(|| Obstacle::new(&state.at, OTHERS));
            }
        }
    }
    found
}

/// Why a property cannot be decided with one actor of each machine; `None` if it can.
pub(super) fn obstacle(model: &Model<'_>, property: usize) -> Option<Obstacle> {
    let of = model.def.properties.get(property)?;
    let cel = condition_of(of);
    let ast = charter_expr::parse(cel).ok()?;
    let forbidden = !matches!(of.rule, PropertyRule::Always(_));
    witnesses(ast.root(), forbidden)
        .is_none_or(|n| n > 1)
        .then(|| Obstacle::of(&format!("/properties/{property}"), cel, OTHERS))
}

fn reads_actors(node: &Node) -> bool {
    let mut reads = false;
    tree::visit(node, &mut |n| reads |= matches!(&n.kind, Kind::Ident { name, .. } if name.as_ref() == "actors"));
    reads
}

/// How many actors show that a condition has the forbidden value; `None` if it is not a matter of
/// single actors.
fn witnesses(node: &Node, forbidden: bool) -> Option<usize> {
    if !reads_actors(node) {
        return Some(0);
    }
    match &node.kind {
        // All operands have the forbidden value, or one of them.
        Kind::And(operands) | Kind::Or(operands) => {
            let all = matches!(node.kind, Kind::And(_)) == forbidden;
            let counts: Option<Vec<usize>> = operands.iter().map(|o| witnesses(o, forbidden)).collect();
            let counts = counts?.into_iter();
            if all { Some(counts.sum()) } else { counts.max() }
        }
        Kind::Unary { op: UnaryOp::Not, count, operand } => witnesses(operand, forbidden ^ (count % 2 == 1)),
        Kind::Postfix { base, links } => {
            let [link] = links.as_slice() else { return None };
            let LinkKind::Macro { name, vars, condition: None, body } = &link.kind else { return None };
            let actors = matches!(&base.kind, Kind::Ident { name, .. } if name.as_ref() == "actors");
            let single = matches!((name, forbidden), (MacroName::Exists, true) | (MacroName::All, false));
            // With two variables, the first one is the id, and the only one without.
            let reads_id = vars.first().is_none_or(|id| {
                let mut reads = false;
                tree::visit(body, &mut |n| reads |= matches!(&n.kind, Kind::Ident { name, .. } if name == id));
                reads
            });
            (actors && single && !reads_id && !reads_actors(body)).then_some(1)
        }
        _ => None,
    }
}
