//! The candidates for an event in each active region, for explanations.

use std::collections::BTreeMap;

use crate::event::Ev;
use crate::machine::{Chart, Transition, TransitionId};
use crate::selection::{Evaluation, region_candidates};

/// Evaluates the candidates of each region up to the one that is taken there, each once; for
/// reports. What comes after it in its region has no part in the answer to the event.
pub(super) fn visit_candidates<'c>(
    chart: &'c Chart,
    configuration: &[u32],
    ev: &Ev<'_>,
    mut visit: impl FnMut(TransitionId, &'c Transition) -> Evaluation,
) {
    let mut seen = BTreeMap::new();
    for region in region_candidates(chart, configuration, ev) {
        for (id, t) in region {
            let evaluation = *seen.entry(id).or_insert_with(|| visit(id, t));
            if matches!(evaluation, Evaluation::Enabled | Evaluation::Vote) {
                break;
            }
        }
    }
}
