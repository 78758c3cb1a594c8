#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod above;
mod after;
pub mod codes;
mod diff;
mod effort;
mod explore;
mod finding;
mod lints;
mod model;
mod properties;
mod report;
mod tree;
mod types;

use charter_format::Document;
use charter_kernel::{Definition, Machine};
use serde_json::Value as Json;

pub use after::After;
pub use diff::{Change, ChangeEffect, Diff, Example, PropertyChange, Version, diff};
pub use explore::{Exploration, event_data, explore};
pub use finding::{Explored, Finding, Report, Severity, Verdict};

/// Options of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether to explore the charter and check its properties.
    pub explore: bool,
    /// Upper limit of explored states; the exploration stops there.
    pub max_states: usize,
    /// The same limit for charters whose behavior depends only on the configuration (no conditions,
    /// actors or timers): each of their states takes only 30 bytes.
    pub max_plain_states: usize,
    /// Upper limit of events on a path; longer paths are not explored.
    pub max_depth: usize,
    /// Upper limit of values that are tried for one event, answer or input.
    pub max_data: usize,
    /// Upper limit of the work, in steps: as much again is done to look for violations and to prove
    /// that there are none. What is found neither violated nor proved by then is not decided.
    pub effort: usize,
    /// Upper limit in bytes of what a search for a proof remembers; over it, nothing is proved.
    pub memory: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            explore: true,
            max_states: 20_000,
            max_plain_states: 10_000_000,
            max_depth: 10_000,
            max_data: 64,
            effort: 40_000,
            memory: 256 << 20,
        }
    }
}

/// A path through the behavior of a run: its input and the events that follow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The input of the run.
    pub input: Json,
    /// How the run starts, as the first line of a stream for `charter step`: `{"start": {...}}`.
    pub start: Json,
    /// The events, in the form that `charter step` accepts.
    pub events: Vec<Json>,
}

/// Checks a charter that was read from a file. `machine` must be compiled from the definition of
/// the document.
#[must_use]
pub fn check(document: &Document, machine: &Machine, options: &Options) -> Report {
    report(&document.definition, machine, Some(document), options)
}

/// Checks a definition that has no source text. Findings have pointers into the core form, but no
/// lines.
#[must_use]
pub fn check_definition(definition: &Definition, machine: &Machine, options: &Options) -> Report {
    report(definition, machine, None, options)
}

fn report(definition: &Definition, machine: &Machine, document: Option<&Document>, options: &Options) -> Report {
    let model = model::Model::new(definition, machine);
    let mut findings = Vec::new();
    types::check(&model, &mut findings);
    lints::lint(&model, &mut findings);
    let mut explored = Explored::default();
    if options.explore {
        explored = explored_findings(&model, document, options, &mut findings).explored().clone();
    }
    Report { findings: finding::finish(findings, document), explored }
}

/// The stack of the thread that explores from above, which evaluates nested expressions.
const STACK_BYTES: usize = 16 << 20;

/// Explores a charter from below, and if that is not complete from above, and adds the findings.
fn explored_findings(
    model: &model::Model<'_>,
    document: Option<&Document>,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Exploration {
    let (mut exploration, above) = match explore::cannot_be_complete(model) {
        true => both(model, options),
        false => (explore::run(model, options), None),
    };
    exploration.name_obstacle(document);
    if !exploration.explored().complete {
        let above = above.unwrap_or_else(|| above::above(model, options));
        (exploration.explored.abstract_states, exploration.explored.abstract_steps) = (above.states, above.steps);
        exploration.above = Some(above);
    }
    report::report(model, &mut exploration, document, options, findings);
    exploration
}

/// Explores from below and from above at the same time. Neither depends on the other.
fn both(model: &model::Model<'_>, options: &Options) -> (Exploration, Option<above::Above>) {
    let (definition, machine) = (model.def, model.machine);
    std::thread::scope(|scope| {
        let work = || above::above(&model::Model::new(definition, machine), options);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let below = explore::run(model, options);
        // Without a second thread, or if it failed, this one explores from above.
        (below, thread.ok().and_then(|thread| thread.join().ok()))
    })
}
