//! Exploration from above: a search over abstract states that covers all data, principals,
//! times and answers. What it does not reach cannot be reached.
//!
//! The kernel takes the steps; where an expression reads an unknown value, the [`oracle`] decides
//! it, and every sequence of decisions is followed. The number of states is kept finite
//! ([`widen`]), and the search ends after a number of steps, so that it always gives an answer.

mod domain;
mod equal;
mod eval;
mod macros;
mod moves;
mod operators;
mod oracle;
mod search;
mod store;
mod widen;

use charter_expr::ast::Kind;
use charter_kernel::definition::Action;

use crate::Options;
use crate::explore::{Obstacle, condition_of, cone_of_influence};
use crate::model::Model;
use crate::model::walk::Item;
use crate::tree;
use search::{Level, Search};

/// What the exploration from above has found.
pub(crate) struct Above {
    /// For each property: whether it is proved.
    pub(crate) proved: Vec<bool>,
    /// For each property: why it is not proved.
    pub(crate) open: Vec<Option<Obstacle>>,
    /// The states, by chart, that may be active; `None` if not everything was covered.
    pub(crate) reached: Option<Vec<Vec<bool>>>,
    /// The transitions, by chart, that may be taken.
    pub(crate) taken: Option<Vec<Vec<bool>>>,
    /// Abstract states.
    pub(crate) states: usize,
    /// Steps of the kernel.
    pub(crate) steps: usize,
}

impl Above {
    /// Whether a state, by chart, is never active.
    pub(crate) fn excludes_state(&self, chart: usize, state: u32) -> bool {
        self.reached.as_ref().is_some_and(|r| r.get(chart).and_then(|c| c.get(state as usize)) == Some(&false))
    }

    /// Whether a transition, by chart, is never taken.
    pub(crate) fn excludes_transition(&self, chart: usize, transition: u32) -> bool {
        self.taken.as_ref().is_some_and(|t| t.get(chart).and_then(|c| c.get(transition as usize)) == Some(&false))
    }
}

/// Adds the states that one event may enter and exit.
fn pass_through(model: &Model<'_>, taken: &[Vec<bool>], reached: &mut [Vec<bool>]) {
    for ((chart, taken), reached) in model.charts.iter().zip(taken).zip(reached) {
        for (t, _) in chart.transitions.iter().zip(taken).filter(|(_, taken)| **taken) {
            for state in chart.passed_by(t) {
                if let Some(place) = reached.get_mut(state as usize) {
                    *place = true;
                }
            }
        }
    }
}

/// Explores a charter from above.
pub(crate) fn above(model: &Model<'_>, options: &Options) -> Above {
    let count = model.def.properties.len();
    let mut out =
        Above { proved: vec![false; count], open: vec![None; count], reached: None, taken: None, states: 0, steps: 0 };
    if let Some(obstacle) = uncovered(model) {
        out.open.fill(Some(obstacle));
        return out;
    }
    // First without the values of variables, which is quick and often enough; then with those that
    // conditions read.
    let cone = cone_of_influence(model);
    let none = Level {
        variables: model.charts.iter().map(|c| vec![false; c.outline.variables.len()]).collect(),
        inputs: false,
    };
    let read = |(chart, names): (&crate::model::Chart<'_>, &rustc_hash::FxHashSet<String>)| {
        chart.outline.variables.iter().map(|v| names.contains(*v)).collect()
    };
    let all = Level {
        variables: model.charts.iter().zip(&cone.variables).map(read).collect(),
        inputs: cone.inputs || model.charts.iter().any(|c| reads_input(model, c.name)),
    };
    for level in [none, all] {
        let found = Search::new(model, level, options.effort).run(&out.proved);
        out.states = out.states.saturating_add(found.states);
        out.steps = out.steps.saturating_add(found.steps);
        for (i, (proved, open)) in out.proved.iter_mut().zip(&mut out.open).enumerate() {
            if *proved {
                continue;
            }
            let violated = found.violated.get(i).cloned().flatten();
            *open = found.obstacle.clone().or(violated);
            *proved = open.is_none() && found.followed.get(i) == Some(&true);
        }
        if found.obstacle.is_none() {
            let mut found = found;
            pass_through(model, &found.taken, &mut found.reached);
            (out.reached, out.taken) = (Some(found.reached), Some(found.taken));
        }
    }
    out
}

fn reads_input(model: &Model<'_>, _: &str) -> bool {
    let mut found = false;
    model.visit_all(&mut |_, item| {
        if let Item::Cel(cel) = item {
            found |= model.reads_root(cel, "input");
        }
    });
    found
}

/// The first part of a charter that the exploration from above does not cover.
fn uncovered(model: &Model<'_>) -> Option<Obstacle> {
    if !model.def.strict {
        return Some(Obstacle::new("/root", "events that the charter does not declare were not covered"));
    }
    let mut found = None;
    let mut add = |at: &str, cel: Option<&str>, why: &str| {
        found.get_or_insert_with(|| match cel {
            Some(cel) => Obstacle::of(at, cel, why),
            None => Obstacle::new(at, why),
        });
    };
    let check = |at: &str, cel: &str, add: &mut dyn FnMut(&str, Option<&str>, &str)| {
        let Ok(ast) = charter_expr::parse(cel) else { return };
        if !eval::is_free_of_marks(cel) {
            add(at, Some(cel), "it contains a private-use character");
        }
        let mut actors = false;
        tree::visit(ast.root(), &mut |n| {
            actors |= matches!(&n.kind, Kind::Ident { name, .. } if name.as_ref() == "actors");
        });
        if actors && cel.contains("status") {
            add(at, Some(cel), "the run was not paused or cancelled");
        }
    };
    model.visit_all(&mut |at, item| match item {
        Item::Cel(cel) => check(at, cel, &mut add),
        Item::Action(Action::Open { due: Some(_), .. }) => {
            add(at, None, "obligations that become overdue were not covered")
        }
        _ => {}
    });
    for (i, property) in model.def.properties.iter().enumerate() {
        check(&format!("/properties/{i}"), condition_of(property), &mut add);
    }
    let text = serde_json::to_string(model.def).unwrap_or_default();
    if !eval::is_free_of_marks(&text) {
        add("/root", None, "the charter contains a private-use character that the analysis uses itself");
    }
    found
}
