//! Data flow into the cone: adds everything that a variable in the cone is computed from, and
//! traces copied values to their source.

use std::collections::BTreeSet;

use charter_kernel::definition::{Action, Template};
use rustc_hash::FxHashSet;

use super::sources::{Source, sources, strip};
use super::{ConeBuilder, Events};
use crate::model::Model;
use crate::model::walk::{Item, indexes, variable_of};
use crate::tree;

/// Where a value was copied from: a source of data, or the context of a chart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Source(Source),
    Context(usize),
}

/// An assignment that copies the value at `from` to `context.TO...` of a chart.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) chart: usize,
    pub(super) to: Vec<String>,
    origin: Origin,
    from: Vec<String>,
}

impl<'d> ConeBuilder<'_, 'd> {
    /// Records values that are copied unchanged.
    pub(super) fn flow(&mut self, chart: usize, to: &[String], value: &'d Template, events: Events<'_>) {
        match value {
            Template::Literal(_) | Template::List(_) => {}
            Template::Object(fields) => {
                for (key, value) in fields {
                    let mut to = to.to_vec();
                    to.push(key.clone());
                    self.flow(chart, &to, value, events);
                }
            }
            Template::Cel(cel) => {
                let Some((root, fields)) = self.model.ast(cel).and_then(|ast| tree::path_of(ast.root())) else {
                    return;
                };
                let mut add =
                    |origin: Origin, from: Vec<String>| self.flows.push(Flow { chart, to: to.to_vec(), origin, from });
                match root.as_str() {
                    "event" => {
                        for (source, drop) in events {
                            if let Some(from) = strip(&fields, *drop) {
                                add(Origin::Source(source.clone()), from);
                            }
                        }
                    }
                    "input" if chart == 0 => add(Origin::Source(Source::Input), fields),
                    "context" => add(Origin::Context(chart), fields),
                    _ => {}
                }
            }
        }
    }

    /// Adds everything that the variables in the cone are computed from.
    pub(super) fn variables(&mut self) {
        let model = self.model;
        // Several charts may use the same named action, so every assignment counts for each chart
        // that has the variable.
        let mut assignments: Vec<(String, Vec<&'d str>)> = Vec::new();
        model.visit_all(&mut |_, item| {
            if let Item::Assign(path, value) = item {
                let mut cels = Model::cels(value);
                cels.extend(indexes(path));
                assignments.push((variable_of(path).to_string(), cels));
            }
            // The data of an event sent inside the run may affect the behavior of its receiver.
            if let Item::Action(Action::Raise { data: Some(data), .. }) = item {
                assignments.push((String::new(), Model::cels(data)));
            }
            if let Item::Action(Action::Send(send)) = item {
                assignments.push((String::new(), send.data.iter().flat_map(Model::cels).collect()));
            }
            if let Item::Action(Action::Spawn { input: Some(input), .. }) = item {
                assignments.push((String::new(), Model::cels(input)));
            }
        });
        loop {
            let before: usize = self.cone.variables.iter().map(FxHashSet::len).sum();
            for (chart, decides) in self.cone.variables.iter_mut().enumerate() {
                for (variable, cels) in &assignments {
                    if variable.is_empty() || decides.contains(variable) {
                        for read in cels.iter().flat_map(|cel| model.context_reads(cel)) {
                            match read {
                                Some(name) => drop(decides.insert(name)),
                                None => decides.extend(
                                    model
                                        .charts
                                        .get(chart)
                                        .into_iter()
                                        .flat_map(|c| &c.outline.variables)
                                        .map(|v| (*v).to_string()),
                                ),
                            }
                        }
                    }
                }
            }
            if self.cone.variables.iter().map(FxHashSet::len).sum::<usize>() == before {
                break;
            }
        }
        // Comparisons in the value of a variable that is in the cone: `ok ? 'a' : 'b'`.
        for number in 0..model.charts.len() {
            let Some(chart) = model.charts.get(number) else {
                continue;
            };
            for t in &chart.transitions {
                let events = sources(model, chart, t);
                let mut deciding: Vec<&'d str> = Vec::new();
                model.visit_block(&t.def.actions, "", &mut |_, item| {
                    if let Item::Assign(path, value) = item
                        && self.cone.variables.get(number).is_some_and(|v| v.contains(variable_of(path)))
                    {
                        deciding.extend(
                            Model::cels(value)
                                .into_iter()
                                .filter(|cel| model.ast(cel).is_some_and(|ast| tree::path_of(ast.root()).is_none())),
                        );
                    }
                });
                deciding.into_iter().for_each(|cel| self.deciding(number, cel, &events));
            }
        }
    }

    /// Traces the probes of context variables to the data that they were copied from.
    pub(super) fn trace_origins(&mut self) {
        let mut seen: BTreeSet<(usize, Vec<String>, bool, String)> = BTreeSet::new();
        while let Some((chart, fields, probe)) = self.pending.pop() {
            let what = format!("{:?}{:?}{}", probe.constants, probe.sizes, probe.names);
            if fields.len() > 16 || seen.len() > 100_000 || !seen.insert((chart, fields.clone(), probe.decides, what)) {
                continue;
            }
            let mut found: Vec<(Origin, Vec<String>)> = Vec::new();
            for flow in self.flows.iter().filter(|f| f.chart == chart) {
                if let Some(rest) = fields.strip_prefix(flow.to.as_slice()) {
                    found.push((flow.origin.clone(), flow.from.iter().chain(rest).cloned().collect()));
                }
            }
            for (origin, path) in found {
                match origin {
                    Origin::Source(source) => self.put(source, path, &probe),
                    Origin::Context(chart) => self.pending.push((chart, path, probe.clone())),
                }
            }
        }
    }
}
