//! The report: findings with their code, place and, if the exploration found them, counterexample;
//! and how much was explored.

use std::cmp::Reverse;
use std::sync::Arc;

use charter_format::{Diagnostic, Document, SourceFile};
use charter_kernel::Machine;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value as Json, json};

use crate::after::{After, after};
use crate::explore::{Move, trace_of};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Information.
    Info,
    /// The charter probably does not do what its author intended.
    Warning,
    /// A part of the charter cannot work, or a property does not hold.
    Error,
}

impl Severity {
    /// `error`, `warning` or `info`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// What is known about a property, or about something that the exploration did not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// True for all data, principals, orders, times and answers of actors.
    Proved,
    /// Not true: the finding has the events that show it, which the kernel has replayed.
    Violated,
    /// Neither.
    Undecided,
}

/// A finding.
///
/// As JSON:
/// `{"severity","code","verdict","path","line","column","message","help","at","input","witness","after"}`;
/// `verdict`, `help`, `input`, `witness` and `after` are omitted if they are empty; `file` says
/// that the place is in another file than the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// Stable kebab-case code; [`crate::codes::ALL`] lists them.
    pub code: &'static str,
    /// How certain it is, if the exploration has decided it or tried to.
    pub verdict: Option<Verdict>,
    /// JSON pointer into the core form.
    pub at: String,
    /// Byte range inside the expression at `at`, if the finding is about a part of it.
    pub bytes: Option<(usize, usize)>,
    /// Path in the document, such as `states.review.on.APPROVE`; the JSON pointer if there is no
    /// document.
    pub path: String,
    /// Byte range of the source text; `(0, 0)` without source text.
    pub span: (usize, usize),
    /// Line, counted from 1; 0 without source text.
    pub line: usize,
    /// Column in characters, counted from 1; 0 without source text.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// How to fix it, and how in an imported statechart, if that differs; `help` has the one that
    /// applies.
    pub help_in_import: Option<[&'static str; 2]>,
    /// The input of the run in the counterexample.
    pub input: Option<Json>,
    /// The counterexample, in the form that `charter step` accepts: the first line starts the run,
    /// the others are events.
    pub witness: Vec<Json>,
    /// Where the run is after each of these lines; shorter than `witness` if the last one is
    /// refused, or if there are more than 200.
    pub after: Vec<After>,
    /// The file of the place if it is not the document: an imported statechart.
    pub file: Option<Arc<SourceFile>>,
}

impl Finding {
    pub(crate) fn new(
        severity: Severity,
        code: &'static str,
        at: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            severity,
            code,
            verdict: None,
            at: at.into(),
            bytes: None,
            path: String::new(),
            span: (0, 0),
            line: 0,
            column: 0,
            message: message.into(),
            help: None,
            help_in_import: None,
            input: None,
            witness: Vec::new(),
            after: Vec::new(),
            file: None,
        }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// Sets the help, and that for a place in an imported statechart.
    #[must_use]
    pub(crate) fn help_by_place(mut self, help: &'static str, in_import: &'static str) -> Finding {
        self.help_in_import = Some([help, in_import]);
        self.help(help)
    }

    #[must_use]
    pub(crate) fn verdict(mut self, verdict: Verdict) -> Finding {
        self.verdict = Some(verdict);
        self
    }

    #[must_use]
    pub(crate) fn bytes(mut self, start: usize, end: usize) -> Finding {
        self.bytes = Some((start, end));
        self
    }

    #[must_use]
    pub(crate) fn witness(mut self, machine: &Machine, moves: &[Arc<Move>]) -> Finding {
        let trace = trace_of(moves);
        self.input = Some(trace.input);
        self.witness = std::iter::once(trace.start).chain(trace.events).collect();
        self.after = after(machine, moves);
        self
    }
}

impl Finding {
    /// The events of the counterexample, without its start.
    #[must_use]
    pub fn events(&self) -> &[Json] {
        self.witness.split_first().map_or(&[], |(_, events)| events)
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("severity", &self.severity)?;
        out.serialize_entry("code", self.code)?;
        if let Some(verdict) = &self.verdict {
            out.serialize_entry("verdict", verdict)?;
        }
        out.serialize_entry("path", &self.path)?;
        out.serialize_entry("line", &self.line)?;
        out.serialize_entry("column", &self.column)?;
        out.serialize_entry("message", &self.message)?;
        if let Some(help) = &self.help {
            out.serialize_entry("help", help)?;
        }
        out.serialize_entry("at", &self.at)?;
        if let Some(input) = &self.input {
            out.serialize_entry("input", input)?;
        }
        if !self.witness.is_empty() {
            out.serialize_entry("witness", &self.witness)?;
            out.serialize_entry("after", &self.after)?;
        }
        if let Some(file) = &self.file {
            out.serialize_entry("file", &file.name)?;
        }
        out.end()
    }
}

/// How much of the charter's behavior was explored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Explored {
    /// Distinct states: snapshots that differ in something that affects behavior.
    pub states: usize,
    /// The accepted events that lead from one state to another.
    pub edges: usize,
    /// The most principals that were tried for one event.
    pub principals: usize,
    /// The most different data that was tried for one event.
    pub data: usize,
    /// Abstract states: each stands for all data, principals and times that lead to it.
    pub abstract_states: usize,
    /// The steps that proofs took, each for one way in which unknown values decide.
    pub abstract_steps: usize,
    /// Whether the exploration covers all behavior: all data, principals, orders and times.
    pub complete: bool,
    /// What keeps it from being complete, the first obstacle first; empty if it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

/// The result of a check: findings ordered by severity, then by their position in the source.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
    /// How much was explored.
    pub explored: Explored,
}

impl Report {
    /// The report as JSON, with the warnings that reading the charter gave before it.
    #[must_use]
    pub fn json(&self, document: &Document) -> Json {
        let read = document.warnings.iter().map(|w| serde_json::to_value(w).unwrap_or_default());
        let found = self.findings.iter().map(|f| serde_json::to_value(f).unwrap_or_default());
        json!({"findings": read.chain(found).collect::<Vec<_>>(), "explored": self.explored})
    }

    /// Whether there is neither an error nor a warning.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|f| f.severity == Severity::Info)
    }

    /// Whether something could be neither proved nor refuted: a property, or that a state or a
    /// transition cannot be reached.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.findings.iter().any(|f| f.verdict == Some(Verdict::Undecided))
    }

    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }
}

/// Upper limit of findings per code, so that a charter with 100,000 states does not produce 100,000
/// findings.
const MAX_PER_CODE: usize = 100;

/// Keeps the first findings of each code; the last finding that is kept says how many were omitted.
fn thin(findings: &mut Vec<Finding>) {
    let mut counts: std::collections::BTreeMap<&'static str, usize> = Default::default();
    for f in findings.iter() {
        let count = counts.entry(f.code).or_default();
        *count = count.saturating_add(1);
    }
    let mut seen: std::collections::BTreeMap<&'static str, usize> = Default::default();
    findings.retain_mut(|f| {
        let nth = seen.entry(f.code).or_default();
        *nth = nth.saturating_add(1);
        let all = counts.get(f.code).copied().unwrap_or_default();
        if *nth == MAX_PER_CODE && all > MAX_PER_CODE {
            let more = all.saturating_sub(MAX_PER_CODE);
            let rest = format!("{more} more findings of this kind are not shown");
            f.help = Some(match f.help.take() {
                Some(help) => format!("{help}; {rest}"),
                None => rest,
            });
        }
        *nth <= MAX_PER_CODE
    });
}

/// Adds the places of findings, removes duplicates and sorts.
pub(crate) fn finish(mut findings: Vec<Finding>, document: Option<&Document>) -> Vec<Finding> {
    thin(&mut findings);
    for f in &mut findings {
        match document {
            Some(document) => {
                let diagnostic = Diagnostic::error(f.code, Default::default(), "");
                let place = document.placed(&f.at, f.bytes, diagnostic);
                f.span = (place.span.start, place.span.end);
                (f.path, f.line, f.column, f.file) = (place.path, place.line, place.column, place.file);
                if let (Some([own, in_import]), true) = (f.help_in_import, f.file.is_some()) {
                    f.help = f.help.take().map(|help| help.replacen(own, in_import, 1));
                }
            }
            None => f.path.clone_from(&f.at),
        }
    }
    findings.sort_by(|a, b| {
        (Reverse(a.severity), a.span, &a.at, a.bytes, a.code).cmp(&(
            Reverse(b.severity),
            b.span,
            &b.at,
            b.bytes,
            b.code,
        ))
    });
    findings.dedup_by(|a, b| a.at == b.at && a.bytes == b.bytes && a.code == b.code && a.message == b.message);
    findings
}
