//! The sources of data in a run, and which of them `event` refers to in a transition.

use std::collections::BTreeSet;

use super::ConeBuilder;
use crate::model::{Chart, Model, Transition, Trigger, is_platform, matches, named_event};

/// A source of data that an exploration has to generate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// The data of an event.
    Event(String),
    /// The output of an actor.
    Output(String),
    /// The error of an actor.
    Error,
    /// The input of the run.
    Input,
}

impl<'d> ConeBuilder<'_, 'd> {
    /// Returns, by state, the events that can enter it. The entry actions of the state see these
    /// events.
    pub(super) fn arrivals(&self, chart: &Chart<'d>) -> Vec<Vec<(Source, Option<&'static str>)>> {
        let mut arrivals = vec![BTreeSet::new(); chart.states.len()];
        for t in &chart.transitions {
            let leaves = t.targets.iter().flat_map(|s| chart.default_leaves(*s));
            let entered: BTreeSet<u32> = leaves.flat_map(|l| chart.upwards(l)).collect();
            let events = sources(self.model, chart, t);
            for state in entered {
                if let Some(arrivals) = arrivals.get_mut(state as usize) {
                    arrivals.extend(events.iter().cloned());
                }
            }
        }
        let sorted = arrivals.into_iter().map(|set| set.into_iter().collect());
        sorted.collect()
    }
}

/// Converts a path in `event` to a path in the data, which has neither `data` nor the wrapper that
/// the platform adds.
pub(super) fn strip(fields: &[String], wrapped: Option<&'static str>) -> Option<Vec<String>> {
    let fields = fields.strip_prefix(&["data".to_string()]).unwrap_or(fields);
    match (wrapped, fields) {
        (None, [first, ..]) if first == "type" => None,
        (None, fields) => Some(fields.to_vec()),
        (Some(word), [first, rest @ ..]) if first == word => Some(rest.to_vec()),
        (Some(_), _) => None,
    }
}

/// The sources that `event` can refer to in a transition.
pub(crate) fn sources(model: &Model<'_>, chart: &Chart<'_>, t: &Transition<'_>) -> Vec<(Source, Option<&'static str>)> {
    match t.trigger {
        Trigger::Always | Trigger::After | Trigger::StateDone => Vec::new(),
        Trigger::InvokeDone(_) => {
            t.invocation(chart).map(|i| (Source::Output(i.src.clone()), Some("output"))).into_iter().collect()
        }
        Trigger::InvokeError(_) => vec![(Source::Error, Some("error"))],
        Trigger::On(descriptors) => {
            let mut out = Vec::new();
            for d in descriptors {
                if let Some(id) = d.strip_prefix("done.invoke.") {
                    let of = chart
                        .states
                        .iter()
                        .flat_map(|s| &s.def.invoke)
                        .filter(|i| id == "*" || crate::model::invocation_id(i) == id);
                    out.extend(of.map(|i| (Source::Output(i.src.clone()), Some("output"))));
                } else if d.starts_with("error.") {
                    out.push((Source::Error, Some("error")));
                } else if !is_platform(d) {
                    let declared = model.def.events.keys().filter(|name| matches(d, name));
                    out.extend(declared.map(|name| (Source::Event(name.clone()), None)));
                    if let Some(name) = named_event(d).filter(|name| !model.def.events.contains_key(*name)) {
                        out.push((Source::Event(name.to_owned()), None));
                    }
                }
            }
            out
        }
    }
}
