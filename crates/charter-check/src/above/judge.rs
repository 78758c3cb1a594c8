//! Evaluates properties in abstract states.

use charter_expr::Fuel;

use crate::explore::{Obstacle, START};

use super::search::{AbstractState, FUEL_PER_MOVE, Search, Violation};
use super::slice::Path;

impl Search<'_, '_> {
    /// Evaluates the properties in a state.
    pub(super) fn judge(&mut self, state: &AbstractState) {
        for number in 0..self.rules.len() {
            let Some(Some(rule)) = self.rules.get(number) else { continue };
            if state.seen & rule.before != 0 || self.out.violated.get(number).is_none_or(Option::is_some) {
                continue;
            }
            let tape = self.oracle.tape.take();
            let anybody = self.oracle.anybody.replace(false);
            let mut violated = None;
            let mut cut;
            loop {
                self.oracle.begin(&state.store);
                let snapshot = self.with_unknowns(&state.snapshot);
                let (query, unknowns) = (&rule.query, &self.unknowns);
                let answer = self.model.machine.ask_with(&snapshot, query, START, unknowns, &mut self.fuel);
                self.out.steps = self.out.steps.saturating_add(1);
                let cost = FUEL_PER_MOVE.saturating_add(state.cost);
                self.fuel = Fuel::new(self.fuel.left().saturating_sub(cost));
                cut = self.fuel.left() <= self.reserve;
                if cut {
                    break;
                }
                if answer.is_err() || answer.is_ok_and(|answer| answer == rule.bad) {
                    violated = Some(self.path(&state.path));
                    break;
                }
                if !self.oracle.tape.borrow_mut().next() {
                    break;
                }
            }
            self.oracle.tape.replace(tape);
            if cut {
                self.is_over();
            }
            self.oracle.anybody.set(anybody);
            if let Some(path) = violated {
                let why = "it could be neither solved nor refuted";
                let obstacle = match Path::last(&path) {
                    Some(cel) => Obstacle::of(&self.place(&cel), &cel, why),
                    None => Obstacle::new(&format!("/properties/{number}"), "no data was found that violates it"),
                };
                if let Some(place) = self.out.violated.get_mut(number) {
                    *place = Some(Violation { obstacle, path });
                }
            }
        }
    }
}
