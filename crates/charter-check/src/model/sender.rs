//! Whether it matters who starts a run, and who answers the task of an actor.

use std::cell::Cell;
use std::collections::BTreeSet;

use charter_kernel::definition::{Action, Template};
use serde_json::Value as Json;

use super::walk::Item;
use super::{Model, Transition, Trigger, is_platform, matches};

impl<'d> Model<'d> {
    /// Whether an expression that may be evaluated at the start of a run, or with the answer to an
    /// invocation, reads `by`: the person who starts the run, or answers the task.
    pub(crate) fn reads_starter_or_answerer(&self) -> bool {
        let raised = self.all_raised();
        let found = Cell::new(false);
        let visit = &mut |_: &str, item: Item<'d>| {
            if let Item::Cel(cel) = item {
                found.set(found.get() || self.reads_root(cel, "by"));
            }
        };
        for chart in &self.charts {
            for (name, value) in &chart.def.context {
                super::walk::template(value, name, visit);
            }
            if let Some(value) = &chart.def.output {
                super::walk::template(value, &chart.at, visit);
            }
            for state in &chart.states {
                self.visit_state(state.def, &state.at, visit);
            }
            for t in chart.transitions.iter().filter(|t| is_inside(t, &raised)) {
                self.visit_condition(t.def, t.at, visit);
                self.visit_block(&t.def.actions, t.at, visit);
            }
        }
        found.get()
    }

    /// The events that actions raise or send inside the run, declared or not; `None` if a name is
    /// computed.
    fn all_raised(&self) -> Option<BTreeSet<&'d str>> {
        let mut raised = Some(BTreeSet::new());
        self.visit_all(&mut |_, item| {
            let kind = match item {
                Item::Action(Action::Raise { r#type, .. }) => r#type,
                Item::Action(Action::Send(send)) => &send.r#type,
                _ => return,
            };
            match kind {
                Template::Literal(Json::String(name)) => drop(raised.as_mut().map(|names| names.insert(name.as_str()))),
                _ => raised = None,
            }
        });
        raised
    }
}

/// Whether a transition may be taken in a step that no event of a sender begins.
fn is_inside(t: &Transition<'_>, raised: &Option<BTreeSet<&str>>) -> bool {
    let (Trigger::On(descriptors), Some(raised)) = (t.trigger, raised) else { return true };
    descriptors.iter().any(|d| is_platform(d) || raised.iter().any(|name| matches(d, name)))
}
