//! Transitions that are never taken because an earlier transition of the same state always takes
//! precedence for the same event.

use charter_kernel::definition::Transition as Def;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Chart, Model, Transition, Trigger, is_platform, matches};

pub(crate) fn shadowed(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for state in &chart.states {
            for (place, later) in state.transitions.iter().enumerate() {
                let later = chart.transition(*later);
                let earlier = state.transitions.iter().take(place).map(|t| chart.transition(*t));
                let Some(winner) = earlier.into_iter().find(|e| covers(chart, e, later) && wins(e.def, later.def))
                else {
                    continue;
                };
                let why = if winner.is_unconditional() { "has no condition" } else { "has the same condition" };
                let message = format!("this transition is never taken: `{}` is tried first and {why}", winner.name);
                let help = "move it before the other one, add a condition to the other one, or remove it";
                findings
                    .push(Finding::new(Severity::Warning, codes::SHADOWED_TRANSITION, later.at, message).help(help));
            }
        }
    }
}

/// Whether `earlier` is a candidate for every event that `later` is a candidate for.
fn covers(chart: &Chart<'_>, earlier: &Transition<'_>, later: &Transition<'_>) -> bool {
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
