//! Turns an exploration into findings: deadlocks, refusals, coverage, and the results of
//! properties.

use charter_kernel::Code;
use charter_kernel::definition::PropertyRule;
use rustc_hash::FxHashSet;

use crate::codes;
use crate::explore::{Exploration, trace_of};
use crate::finding::{Finding, Severity};
use crate::model::Model;
use crate::properties::PropertyOutcome;

pub(crate) fn report(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    samples(e, findings);
    if e.explored.states == 0 {
        let why = e.not_started.first().map_or("no input could be generated", String::as_str);
        let finding = Finding::new(
            Severity::Error,
            codes::CANNOT_START,
            "/root",
            format!("no run of this charter can be started: {why}"),
        );
        findings.push(finding.help("add `examples` to the `input` schema, or fix the failure"));
        return;
    }
    ends(model, e, findings);
    refusals(model, e, findings);
    coverage(model, e, findings);
    properties(model, e, findings);
}

/// Reports schemas for which no data could be generated.
fn samples(e: &Exploration, findings: &mut Vec<Finding>) {
    for (at, what) in &e.missing {
        let message = format!("no data could be generated for {what}; it was not explored");
        findings.push(Finding::new(Severity::Info, codes::NO_SAMPLE, at, message).help("add `examples` to the schema"));
    }
}

fn ends(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    // Report only the first explored state for each place: it has a shortest trace.
    let mut seen: FxHashSet<String> = FxHashSet::default();
    for (node, stuck) in &e.ends {
        let (at, names) = e.where_is(model, *node);
        if !seen.insert(at.clone()) || seen.len() > 20 {
            continue;
        }
        let finding = if *stuck {
            let message = format!("deadlock: nothing more can happen in {names}, but the run has not ended");
            Finding::new(Severity::Error, codes::DEADLOCK, at, message)
                .help("add a transition out of it, or make it final")
        } else {
            let message = format!("no event that was tried is accepted in {names}");
            Finding::new(Severity::Warning, codes::STUCK, at, message)
                .help("if some data is accepted there, add it as `examples` to the event's schema; otherwise add a transition out of it")
        };
        findings.push(finding.witness(e.predecessors.trace(*node)));
    }
}

fn refusals(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    for r in &e.refused {
        let (place, names) = e.where_is(model, r.node);
        let what = r.how.label();
        let finding = match r.code {
            Code::Interlock => {
                let id = r.interlock.as_deref().unwrap_or("");
                let at =
                    model.def.interlocks.iter().position(|l| l.id == id).map_or(place, |i| format!("/interlocks/{i}"));
                Finding::new(
                    Severity::Info,
                    codes::INTERLOCK,
                    at,
                    format!("{what} in {names} can be refused: {}", r.message),
                )
            }
            Code::Runaway => Finding::new(
                Severity::Error,
                codes::RUNAWAY,
                place,
                format!("{what} in {names} does not settle and is refused"),
            )
            .help("add a guard to one of the transitions of the cycle"),
            Code::TooCostly | Code::TooLarge => {
                let code = if r.code == Code::TooCostly { codes::TOO_COSTLY } else { codes::TOO_LARGE };
                let severity = if r.how.is_from_outside() { Severity::Info } else { Severity::Warning };
                Finding::new(severity, code, place, format!("{what} in {names} can be refused: {}", r.message))
                    .help("let the event do less, or raise the limit")
            }
            _ => {
                // A sender can react to a refusal, but if an answer or a timer is refused, the run
                // keeps waiting.
                let severity = if r.how.is_from_outside() { Severity::Info } else { Severity::Warning };
                let message = format!("{what} in {names} can be refused as `execution`: {}", r.message);
                Finding::new(severity, codes::EXECUTION, place, message)
                    .help("rule the failure out with a guard or a schema, or handle `error.execution`")
            }
        };
        findings.push(finding.witness(e.predecessors.trace_with(r.node, &r.how)));
    }
}

/// Reports states and transitions that were never reached, unless a lint has already explained why.
fn coverage(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    let known: FxHashSet<String> = findings.iter().map(|f| f.at.clone()).collect();
    let complete = e.explored.complete;
    let severity = if complete { Severity::Warning } else { Severity::Info };
    let states = e.explored.states;
    let tail = if complete {
        String::new()
    } else {
        format!(" (the exploration was cut short: {})", e.explored.cut.join("; "))
    };
    for (number, chart) in model.charts.iter().enumerate() {
        if !e.saw(number, 0) {
            let message = format!("no actor of machine `{}` was started in {states} explored states{tail}", chart.name);
            if !known.contains(&chart.at) {
                findings.push(Finding::new(severity, codes::STATE_NOT_REACHED, &chart.at, message));
            }
            continue;
        }
        let missed = |s: &u32| !e.saw(number, *s);
        let history = |s: u32| {
            matches!(
                chart.state(s).kind,
                charter_kernel::definition::StateKind::Shallow | charter_kernel::definition::StateKind::Deep
            )
        };
        for state in chart.numbers().filter(|s| missed(s) && !history(*s)) {
            let outer = chart.state(state).parent.is_some_and(|p| missed(&p));
            if outer || known.contains(&chart.state(state).at) {
                continue;
            }
            let message = format!("{} was not reached in {states} explored states{tail}", chart.label(state));
            let help = "if it can be reached, add the data that leads there as `examples` to its schema";
            findings.push(Finding::new(severity, codes::STATE_NOT_REACHED, &chart.state(state).at, message).help(help));
        }
    }
    for (number, (chart, taken)) in model.charts.iter().zip(&e.taken).enumerate() {
        for (t, _) in chart.transitions.iter().zip(taken).filter(|(_, found)| found.is_none()) {
            // The state is never active, which has already been reported.
            if !e.saw(number, t.source) || known.contains(t.at) || t.def.refuse.is_some() {
                continue;
            }
            let message = format!("`{}` was never taken in {states} explored states{tail}", t.name);
            let help = "if it can be taken, add data that satisfies its condition as `examples` to the schema";
            findings.push(Finding::new(severity, codes::TRANSITION_NOT_TAKEN, t.at, message).help(help));
        }
    }
}

fn properties(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    for verdict in &e.verdicts {
        let Some(property) = model.def.properties.get(verdict.property) else {
            continue;
        };
        let id = &property.id;
        let at = format!("/properties/{}", verdict.property);
        let (word, cel) = match &property.rule {
            PropertyRule::Never { when, .. } => ("never", when),
            PropertyRule::Always(cel) => ("always", cel),
            PropertyRule::Eventually(cel) => ("eventually", cel),
        };
        findings.push(match &verdict.outcome {
            PropertyOutcome::Holds { complete: true, states } => Finding::new(
                Severity::Info,
                codes::PROPERTY_HOLDS,
                at,
                format!("property `{id}` ({word}) holds in all {states} explored states"),
            ),
            PropertyOutcome::Holds { complete: false, states } => {
                let message = format!(
                    "property `{id}` ({word}) holds in the {states} states that were explored; the exploration was cut short: {}",
                    e.explored.cut.join("; ")
                );
                Finding::new(Severity::Info, codes::PROPERTY_HOLDS, at, message)
                    .help("raise the limit of the exploration")
            }
            PropertyOutcome::Violated { node, event } => {
                let (_, names) = e.where_is(model, *node);
                let holds = if word == "never" { "holds" } else { "does not hold" };
                let before = event.as_ref().map(|e| format!(", before `{e}` was accepted")).unwrap_or_default();
                let message = format!("property `{id}` is violated: `{cel}` {holds} in {names}{before}");
                Finding::new(Severity::Error, codes::PROPERTY_VIOLATED, at, message)
                    .witness(e.predecessors.trace(*node))
            }
            PropertyOutcome::NeverReached { lasso } => {
                let how = match lasso.repeats {
                    0 => "then the run ends or waits for events from outside only".to_string(),
                    1 => "then the last event repeats forever".to_string(),
                    n => format!("then the last {n} events repeat forever"),
                };
                let message =
                    format!("property `{id}` is violated: `{cel}` never holds on the path of the counterexample; {how}");
                Finding::new(Severity::Error, codes::PROPERTY_VIOLATED, at, message).witness(trace_of(&lasso.moves))
            }
            PropertyOutcome::Error { node, message } => {
                let (_, names) = e.where_is(model, *node);
                let message = format!("property `{id}` cannot be evaluated in {names}: {message}");
                Finding::new(Severity::Error, codes::PROPERTY_FAILS, at, message)
                    .help("test first whether the value exists, with `has(...)` or `in`")
                    .witness(e.predecessors.trace(*node))
            }
        });
    }
}
