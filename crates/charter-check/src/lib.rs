//! Static analysis of charters: types, lints, exhaustive exploration, properties, and the shortest path to everything.
//!
//! ```
//! use charter_check::{Options, check};
//! use charter_format::{ReadOptions, read};
//! use charter_kernel::Machine;
//!
//! let source = "
//! charter: 1
//! id: door
//! events:
//!   OPEN: {data: {type: object}}
//!   CLOSE: {data: {type: object}}
//! context: {count: 0}
//! initial: closed
//! states:
//!   closed:
//!     on: {OPEN: {target: opened, when: context.cuont < 3}}
//!   opened:
//!     on: {CLOSE: closed}
//! ";
//! let document = read(source, "door.yaml", &ReadOptions::default())?;
//! let machine = Machine::compile(document.definition.clone()).unwrap();
//! let report = check(&document, &machine, &Options::default());
//! let finding = &report.findings[0];
//! assert_eq!(finding.message, "there is no field `cuont` in `context`");
//! assert_eq!((finding.line, finding.column), (11, 46));
//! assert_eq!(finding.help.as_deref(), Some("did you mean `count`?"));
//! # Ok::<(), charter_format::Diagnostics>(())
//! ```
//!
//! Nothing here runs an effect, reads a clock or touches a file: exploration steps the kernel, with made-up answers.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod codes;
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

pub use explore::{Exploration, explore};
pub use finding::{Explored, Finding, Report, Severity};

/// How to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Explore, and judge properties.
    pub explore: bool,
    /// Situations to look at before the exploration is cut.
    pub max_states: usize,
    /// The same, where nothing but the configuration matters (no conditions, no work, no timers): these are cheap, 30 bytes each.
    pub max_plain_states: usize,
    /// Events on a path before the exploration is cut.
    pub max_depth: usize,
    /// Data that is tried for one event, answer or input.
    pub max_data: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { explore: true, max_states: 20_000, max_plain_states: 10_000_000, max_depth: 10_000, max_data: 64 }
    }
}

/// A way through a run: what it begins with, and what happens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// What the run begins with.
    pub input: Json,
    /// Events as `charter step` accepts them.
    pub events: Vec<Json>,
}

/// Checks a charter that was read from a file. `machine` is made from the document's definition.
#[must_use]
pub fn check(document: &Document, machine: &Machine, options: &Options) -> Report {
    report(&document.definition, machine, Some(document), options)
}

/// Checks a definition that has no source text: findings have pointers into the core form, and no lines.
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
        let exploration = explore::run(&model, options);
        report::report(&model, &exploration, &mut findings);
        explored = exploration.explored().clone();
    }
    Report { findings: finding::finish(findings, document), explored }
}
