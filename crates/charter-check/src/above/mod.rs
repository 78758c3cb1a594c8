//! Exploration from above: a search over abstract states that covers all data, principals,
//! times and answers. What it does not reach cannot be reached.
//!
//! The kernel takes the steps; where an expression reads an unknown value, the [`oracle`] decides
//! it, and every sequence of decisions is followed. The number of states is kept finite
//! ([`widen`]), and the search ends after a number of steps, so that it always gives an answer.

mod anybody;
mod canonical;
mod cost;
mod domain;
mod equal;
mod eval;
mod guess;
mod judge;
mod macros;
mod moves;
mod operators;
mod oracle;
mod schemas;
mod search;
mod slice;
mod store;
mod widen;

use crate::Options;
use crate::effort::{fuel, units};
use crate::explore::{Obstacle, condition_of};
use crate::model::Model;
use crate::model::walk::Item;
use crate::tree;
use search::{Limits, Outcome, Search};
use slice::Level;

/// Upper limits of the steps of the search that follows all variables: whatever the other searches
/// have used, and of what they have left.
const FOR_ALL: (usize, usize) = (1_000, 5_000);

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
    /// The fuel that was used.
    work: u64,
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
    let mut out = Above {
        proved: vec![false; count],
        open: vec![None; count],
        reached: None,
        taken: None,
        states: 0,
        steps: 0,
        work: 0,
    };
    if let Some(obstacle) = uncovered(model) {
        out.open.fill(Some(obstacle));
        return out;
    }
    // First without the values of variables, which is quick and often enough; then for each
    // property with those that matter to it; at last with all that conditions read.
    let limits = |effort| Limits { effort, memory: options.memory };
    let effort = fuel(options.effort);
    let mut left = effort.checked_div(4).unwrap_or(0);
    out.search(Search::new(model, Level::nothing(model), limits(left)));
    let anybody = anybody::spawns(model);
    let undecidable: Vec<Option<Obstacle>> = (0..count).map(|p| undecidable(model, p, anybody)).collect();
    for (open, obstacle) in out.open.iter_mut().zip(&undecidable) {
        *open = obstacle.clone().or_else(|| open.take());
    }
    let alone = |property: usize| undecidable.get(property).is_some_and(Option::is_none);
    // Each property has its share of the effort; and a second time, if that was too little, of what
    // is left.
    for again in [false, true] {
        let ended =
            |p: &usize| out.open.get(*p).and_then(Option::as_ref).is_some_and(|o| o.why.starts_with(search::ENDED));
        let unproved: Vec<usize> =
            (0..count).filter(|p| out.proved.get(*p) == Some(&false) && alone(*p) && (!again || ended(p))).collect();
        for (place, property) in unproved.iter().enumerate() {
            let share = unproved.len().saturating_sub(place);
            left = effort.saturating_sub(out.work).checked_div(units(share)).unwrap_or(0);
            out.prove(model, *property, limits(left));
        }
    }
    left = effort.saturating_sub(out.work).max(effort.min(fuel(FOR_ALL.0))).min(fuel(FOR_ALL.1));
    out.search(Search::new(model, Level::all(model), limits(left)));
    out
}

impl Above {
    /// Searches for all properties that are not proved, and for states and transitions.
    fn search(&mut self, search: Search<'_, '_>) {
        let model = search.model;
        let found = search.run(&self.proved);
        self.count(&found);
        for (i, (proved, open)) in self.proved.iter_mut().zip(&mut self.open).enumerate() {
            if *proved {
                continue;
            }
            let violated = found.violated.get(i).and_then(|v| v.as_ref()).map(|v| v.obstacle.clone());
            let followed = found.followed.get(i) == Some(&true);
            // The search for the property alone says more than one that was not finished.
            *open = match &found.obstacle {
                Some(obstacle) => open.take().or_else(|| Some(obstacle.clone())),
                None => violated.or(open.take().filter(|_| !followed)),
            };
            *proved = open.is_none() && followed;
        }
        if found.obstacle.is_none() {
            let mut found = found;
            pass_through(model, &found.taken, &mut found.reached);
            (self.reached, self.taken) = (Some(found.reached), Some(found.taken));
        }
    }

    fn count(&mut self, found: &Outcome) {
        self.states = self.states.saturating_add(found.states);
        self.steps = self.steps.saturating_add(found.steps);
        self.work = self.work.saturating_add(found.work);
    }

    /// Tries to prove a property, following more and more, until nothing more matters to it.
    fn prove(&mut self, model: &Model<'_>, property: usize, limits: Limits) {
        let mut level = Level::of_property(model, property);
        let end = self.work.saturating_add(limits.effort);
        while self.proved.get(property) == Some(&false) {
            let limits = Limits { effort: end.saturating_sub(self.work), ..limits };
            let found = Search::new(model, level.clone(), limits).run_for(property);
            self.count(&found);
            let violation = found.violated.get(property).and_then(|v| v.as_ref());
            let (Some(open), Some(proved)) = (self.open.get_mut(property), self.proved.get_mut(property)) else {
                return;
            };
            *open = found.obstacle.clone().or(violation.map(|v| v.obstacle.clone()));
            *proved = open.is_none() && found.followed.get(property) == Some(&true);
            match violation {
                Some(violation) if found.obstacle.is_none() && level.refine(model, &violation.path) => {}
                _ => return,
            }
        }
    }
}

/// Why an expression is not covered.
fn unfollowed(at: &str, cel: &str) -> Option<Obstacle> {
    let ast = charter_expr::parse(cel).ok()?;
    if !eval::is_free_of_marks(cel) {
        return Some(Obstacle::of(at, cel, "it contains a private-use character"));
    }
    tree::reads_status(ast.root()).then(|| Obstacle::of(at, cel, "the run was not paused or cancelled"))
}

/// Why a property cannot be decided from above.
fn undecidable(model: &Model<'_>, property: usize, anybody: bool) -> Option<Obstacle> {
    let cel = condition_of(model.def.properties.get(property)?);
    let place = || format!("/properties/{property}");
    unfollowed(&place(), cel).or_else(|| anybody.then(|| anybody::obstacle(model, property)).flatten())
}

/// The first part of a charter that the exploration from above does not cover.
fn uncovered(model: &Model<'_>) -> Option<Obstacle> {
    if !model.def.strict {
        return Some(Obstacle::whole("events that the charter does not declare were not covered"));
    }
    let mut found = None;
    model.visit_all(&mut |at, item| {
        if let Item::Cel(cel) = item
            && found.is_none()
        {
            found = unfollowed(at, cel);
        }
    });
    let text = serde_json::to_string(model.def).unwrap_or_default();
    if !eval::is_free_of_marks(&text) {
        let why = "the charter contains a private-use character that the analysis uses itself";
        found.get_or_insert_with(|| Obstacle::new("/root", why));
    }
    found.or_else(|| anybody::uncovered(model))
}
