//! Transitions that take what an approval, a quorum or `not_by` turns away.

use charter_kernel::definition::Transition as Def;

use super::order::covers;
use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Model, Trigger};

/// Reports a transition without a condition after one that turns some senders away: it takes their
/// events, which should be refused.
pub(crate) fn turned_away(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for state in &chart.states {
            // The transitions so far that turn somebody away.
            let mut strict = Vec::new();
            for number in &state.transitions {
                let t = chart.transition(*number);
                if !matches!(t.trigger, Trigger::On(_)) {
                    continue;
                }
                if let Some(who) = turns_away(t.def) {
                    if strict.len() < MAX_COMPARED {
                        strict.push((t, who));
                    }
                    continue;
                }
                if !t.is_unconditional() || t.def.refuse.is_some() || !t.def.requires.is_empty() {
                    continue;
                }
                let earlier = strict.iter().find(|(e, _)| share_roles(e.def, t.def) && covers(chart, t, e));
                let Some((earlier, who)) = earlier else { continue };
                let message = format!("this transition takes what `{}` turns away: {who}", earlier.name);
                let help = "give it a condition that is false when the other one's is true, so that such an event \
                            is refused and changes nothing";
                findings.push(Finding::new(Severity::Warning, codes::TURNED_AWAY, t.at, message).help(help));
            }
        }
    }
}

/// Upper limit of the transitions of a state that a later one is compared with.
const MAX_COMPARED: usize = 64;

/// The senders whom a transition turns away although they have the roles.
fn turns_away(def: &Def) -> Option<&'static str> {
    if def.not_by.is_some() {
        return Some("the event of somebody whom `not_by` excludes");
    }
    if def.quorum.as_ref().is_some_and(|q| q.count > 1) {
        return Some("a second vote of the same person");
    }
    def.approves.is_some().then_some("an approval of a value that has changed since")
}

/// Whether somebody may have the roles for both.
fn share_roles(earlier: &Def, later: &Def) -> bool {
    let of = earlier.quorum.iter().flat_map(|q| &q.of);
    let roles: Vec<&String> = earlier.by.iter().chain(of).collect();
    roles.is_empty() || later.by.is_empty() || roles.iter().any(|role| later.by.contains(role))
}
