//! Unreachable states and dead ends.

use charter_kernel::definition::StateKind;
use rustc_hash::FxHashSet;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Chart, Model};

/// Computes the states that targets alone could make active.
pub(crate) fn reachable(chart: &Chart<'_>) -> FxHashSet<u32> {
    let mut seen = FxHashSet::default();
    // The states whose initial states are entered, too. The ancestors of a target are entered
    // without their initial states, so they are not included.
    let mut started = FxHashSet::default();
    let mut waiting = vec![0u32];
    while let Some(state) = waiting.pop() {
        if !started.insert(state) {
            continue;
        }
        for up in chart.upwards(state).collect::<Vec<_>>() {
            if !seen.insert(up) {
                continue;
            }
            waiting.extend(chart.state(up).transitions.iter().flat_map(|t| chart.transition(*t).targets));
            if chart.state(up).kind == StateKind::Parallel {
                waiting.extend(chart.outline.states.get(up as usize).into_iter().flat_map(|s| s.children));
            }
        }
        let Some(known) = chart.outline.states.get(state as usize) else {
            continue;
        };
        waiting.extend(known.initial);
        if matches!(known.kind, StateKind::Shallow | StateKind::Deep) {
            waiting.extend(known.parent);
        }
    }
    seen
}

pub(crate) fn unreachable_states(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let seen = reachable(chart);
        for state in chart.numbers().filter(|s| !seen.contains(s)) {
            // Report only the root of an unreachable subtree.
            if chart.state(state).parent.is_some_and(|p| !seen.contains(&p)) {
                continue;
            }
            let message = format!("no transition leads to {}", chart.label(state));
            let help = "add a transition to this state, or remove the state";
            findings.push(
                Finding::new(Severity::Warning, codes::UNREACHABLE_STATE, &chart.state(state).at, message).help(help),
            );
        }
    }
}

pub(crate) fn dead_ends(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let seen = reachable(chart);
        for state in chart.numbers().filter(|s| seen.contains(s) && chart.state(*s).kind == StateKind::Atomic) {
            let up: Vec<u32> = chart.upwards(state).collect();
            let handles = up.iter().any(|s| !chart.state(*s).transitions.is_empty());
            // Another region may have a transition that exits the state.
            let region = up.iter().any(|s| chart.state(*s).kind == StateKind::Parallel);
            if handles || region {
                continue;
            }
            let message = format!(
                "no transition leads out of {}, and it is not final: a run that reaches it stays there",
                chart.label(state)
            );
            let help = "add `type: final` if the run ends there, or add a transition";
            findings.push(Finding::new(Severity::Warning, codes::DEAD_END, &chart.state(state).at, message).help(help));
        }
    }
}
