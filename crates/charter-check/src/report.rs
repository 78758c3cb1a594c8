//! Turns an exploration into findings: deadlocks, refusals, coverage, and the results of
//! properties. Nothing is claimed that the exploration does not prove, and the kernel replays every
//! counterexample before it is reported.

use std::sync::Arc;

use charter_format::Document;
use charter_kernel::Code;
use charter_kernel::definition::PropertyRule;
use rustc_hash::FxHashSet;

use crate::Options;
use crate::codes;
use crate::effort::{Effort, fuel};
use crate::explore::{Exploration, Move, condition_of, repeat_a_key, replay};
use crate::finding::{Explored, Finding, Severity, Verdict};
use crate::model::{Model, Transition, Trigger};
use crate::properties::PropertyOutcome;

/// How often the effort may be used again for replays: for those of properties, and for all others.
const REPLAYS: (u64, u64) = (2, 1);
/// Steps of the effort that replays have at least.
const MIN_REPLAYS: usize = 1_000;

pub(crate) fn report(
    model: &Model<'_>,
    e: &mut Exploration,
    document: Option<&Document>,
    options: &Options,
    findings: &mut Vec<Finding>,
) {
    let effort = fuel(options.effort.max(MIN_REPLAYS));
    e.replays = Effort::new(effort.saturating_mul(REPLAYS.1));
    samples(e, findings);
    if e.explored.states == 0 {
        findings.push(not_started(e));
    }
    ends(model, e, findings);
    refusals(model, e, findings);
    coverage(model, e, findings);
    e.replays = Effort::new(effort.saturating_mul(REPLAYS.0));
    properties(model, e, document, findings);
}

/// Says why no run was started. It is an error only if no input can start one.
fn not_started(e: &Exploration) -> Finding {
    /// Upper limit of the characters of an input in a message.
    const MAX_SHOWN: usize = 200;
    let finding = |severity, message| Finding::new(severity, codes::CANNOT_START, "/root", message);
    if let Some(certain) = e.not_started.iter().find(|start| start.is_certain) {
        let message = format!("no run of this charter can be started: {}", certain.message);
        return finding(Severity::Error, message).verdict(Verdict::Violated).help("fix the failure");
    }
    let message = match e.not_started.first() {
        Some(first) => {
            let input = first.input.to_string();
            let end = input.char_indices().nth(MAX_SHOWN).map(|(end, _)| end);
            let shown = end.map_or(input.clone(), |end| format!("{}...", input.get(..end).unwrap_or_default()));
            let others = match e.not_started.len().saturating_sub(1) {
                0 => String::new(),
                1 => " and with 1 other input".to_owned(),
                n => format!(" and with {n} other inputs"),
            };
            format!("nothing was explored: no run starts with the input `{shown}`{others}: {}", first.message)
        }
        None => "nothing was explored: no input could be generated".to_owned(),
    };
    let help = "add an input with which a run starts to the `examples` of the `input` schema";
    finding(Severity::Info, message).verdict(Verdict::Undecided).help(help)
}

/// Reports schemas for which no data could be generated.
fn samples(e: &Exploration, findings: &mut Vec<Finding>) {
    for (at, what) in &e.missing {
        let message = format!("no data could be generated for {what}; it was not explored");
        findings.push(Finding::new(Severity::Info, codes::NO_SAMPLE, at, message).help("add `examples` to the schema"));
    }
}

fn ends(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    let complete = e.explored.complete;
    // Report only the first explored state for each place: it has a shortest trace.
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let help = match model.charts.first().is_some_and(|root| root.states.len() <= 1) {
        true => "declare its `states`, or make it final",
        false => "add a transition out of it, or make it final",
    };
    for (node, stuck) in e.ends.iter().take_while(|_| !e.replays.is_over()) {
        // A trace that the kernel does not confirm is not reported.
        let Some(snapshot) = e.snapshot(model.machine, *node) else {
            continue;
        };
        let (at, names) = e.where_is(model, *node);
        if !seen.insert(at.clone()) || seen.len() > 20 {
            continue;
        }
        let finding = if *stuck && model.machine.is_stuck(&snapshot) {
            let message = format!("deadlock: nothing more can happen in {names}, but the run has not ended");
            Finding::new(Severity::Error, codes::DEADLOCK, at, message).verdict(Verdict::Violated).help(help)
        } else if complete {
            let message = format!("no event is ever accepted in {names}");
            Finding::new(Severity::Warning, codes::STUCK, at, message).verdict(Verdict::Proved).help(help)
        } else {
            let message =
                format!("no event that was tried is accepted in {names}; others may be: {}", obstacle(&e.explored));
            Finding::new(Severity::Info, codes::STUCK, at, message)
                .verdict(Verdict::Undecided)
                .help("if some data is accepted there, add it as `examples` to the event's schema; otherwise add a transition out of it")
        };
        findings.push(finding.witness(model.machine, &e.moves(model.machine, *node)));
    }
}

fn refusals(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    for r in e.refused.iter().take_while(|_| !e.replays.is_over()).filter(|r| e.is_refused(model.machine, r)) {
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
        findings.push(finding.witness(model.machine, &e.predecessors.moves_with(r.node, &r.how)));
    }
}

/// Reports states and transitions that were never reached, unless a lint has already explained why.
fn coverage(model: &Model<'_>, e: &Exploration, findings: &mut Vec<Finding>) {
    let known: FxHashSet<String> = findings.iter().map(|f| f.at.clone()).collect();
    let complete = e.explored.complete;
    let above = e.above.as_ref();
    let never_active = |chart: usize, state: u32| complete || above.is_some_and(|a| a.excludes_state(chart, state));
    let never_taken = |chart: usize, t: u32| complete || above.is_some_and(|a| a.excludes_transition(chart, t));
    let finding = |certain: bool, code, at: &str, proved: String, missed: String, help: &'static str| match certain {
        true => Finding::new(Severity::Warning, code, at, proved).verdict(Verdict::Proved),
        false => {
            let message = match e.missing.first() {
                Some((_, what)) => format!("{missed}, {}; no data could be generated for {what}", tried(&e.explored)),
                None => format!("{missed}, {}; {}", tried(&e.explored), obstacle(&e.explored)),
            };
            Finding::new(Severity::Info, code, at, message).verdict(Verdict::Undecided).help(help)
        }
    };
    for (number, chart) in model.charts.iter().enumerate() {
        if !e.saw(number, 0) {
            if !known.contains(&chart.at) {
                let proved = format!("no actor of machine `{}` is ever started", chart.name);
                let missed = format!("no start of an actor of machine `{}` was seen", chart.name);
                let help = "if one can be started, add the data that leads there as `examples` to its schema";
                let certain = never_active(number, 0);
                findings.push(finding(certain, codes::STATE_NOT_REACHED, &chart.at, proved, missed, help));
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
            let label = chart.label(state);
            let (proved, missed) = (format!("{label} is never reached"), format!("{label} was not reached"));
            let help = "if it can be reached, add the data that leads there as `examples` to its schema";
            let certain = never_active(number, state);
            findings.push(finding(certain, codes::STATE_NOT_REACHED, &chart.state(state).at, proved, missed, help));
        }
    }
    for (number, (chart, taken)) in model.charts.iter().zip(&e.taken).enumerate() {
        for ((place, t), _) in chart.all().zip(taken).filter(|(_, found)| found.is_none()) {
            // The state is never active, which has already been reported.
            if !e.saw(number, t.source) || known.contains(t.at) || t.def.refuse.is_some() {
                continue;
            }
            let (proved, missed) = (format!("`{}` is never taken", t.name), format!("`{}` was not taken", t.name));
            if never_taken(number, place) && e.is_forbidden(number, place) {
                // The charter says so: a transition may be there for what the interlock refuses.
                let message = format!("{proved}: an interlock refuses each event that would take it");
                let found = Finding::new(Severity::Info, codes::TRANSITION_NOT_TAKEN, t.at, message);
                findings.push(found.verdict(Verdict::Proved));
                continue;
            }
            if !never_taken(number, place)
                && let Some(what) = without_data(e, t)
            {
                let message = format!("{missed}: no data could be generated for {what}");
                let found = Finding::new(Severity::Info, codes::TRANSITION_NOT_TAKEN, t.at, message);
                findings.push(found.verdict(Verdict::Undecided).help("add `examples` to the schema"));
                continue;
            }
            let help = "if it can be taken, add data that satisfies its condition as `examples` to the schema";
            let found = finding(never_taken(number, place), codes::TRANSITION_NOT_TAKEN, t.at, proved, missed, help);
            findings.push(match &t.def.when {
                Some(when) if found.verdict == Some(Verdict::Proved) => found.help(format!(
                    "compare its condition `{when}` with the schema of the event and with the transitions before it"
                )),
                _ => found,
            });
        }
    }
}

/// The event of a transition, if none of its events was tried, because there is no data for it.
fn without_data<'e>(e: &'e Exploration, t: &Transition<'_>) -> Option<&'e str> {
    let Trigger::On(descriptors) = t.trigger else { return None };
    let of =
        |name: &String| e.missing.iter().map(|(_, what)| what.as_str()).find(|what| what.trim_matches('`') == name);
    let all: Option<Vec<&str>> = descriptors.iter().map(of).collect();
    all?.first().copied()
}

fn properties(model: &Model<'_>, e: &Exploration, document: Option<&Document>, findings: &mut Vec<Finding>) {
    for verdict in &e.verdicts {
        let Some(property) = model.def.properties.get(verdict.property) else {
            continue;
        };
        let id = &property.id;
        let at = format!("/properties/{}", verdict.property);
        let cel = condition_of(property);
        let word = match &property.rule {
            PropertyRule::Never { .. } => "never",
            PropertyRule::Always(_) => "always",
            PropertyRule::Eventually(_) => "eventually",
        };
        let undecided = |why: &str| {
            let message = format!("property `{id}` ({word}) is not decided: {why}");
            Finding::new(Severity::Info, codes::PROPERTY_UNDECIDED, &at, message).verdict(Verdict::Undecided)
        };
        let violated = |message: String| {
            Finding::new(Severity::Error, codes::PROPERTY_VIOLATED, &at, message).verdict(Verdict::Violated)
        };
        let unconfirmed = |moves: &[Arc<Move>]| {
            undecided(match repeat_a_key(model.machine, moves) {
                true => {
                    "a violation was seen only with two events that have the same unique key, of which the second is refused"
                }
                false => "the kernel does not confirm the counterexample that was found; please report this",
            })
        };
        // With other data, the events may have free keys and not violate the property.
        let not_confirmed = |node: u32| unconfirmed(&e.predecessors.moves(node));
        let to = |node: u32| e.moves(model.machine, node);
        let rule = format!("{at}/");
        let has_error = findings.iter().any(|f| f.severity == Severity::Error && f.at.starts_with(&rule));
        findings.push(match &verdict.outcome {
            // The kernel has not evaluated the part with the error in any state.
            PropertyOutcome::Holds if has_error => undecided("its condition has an error"),
            PropertyOutcome::Holds if e.explored.complete || e.is_proved_above(verdict.property) => {
                let message = format!("property `{id}` ({word}) is proved");
                Finding::new(Severity::Info, codes::PROPERTY_HOLDS, at, message).verdict(Verdict::Proved)
            }
            PropertyOutcome::Holds => {
                // What stands in the way of other proofs does not matter to this property.
                let stands = e.stands_in_the_way(verdict.property, document);
                let why = stands.unwrap_or_else(|| obstacle(&e.explored).to_owned());
                undecided(&format!("no violation was seen, {}; {why}", tried(&e.explored)))
            }
            // No replay of a state takes more than finding it, but many may.
            _ if e.replays.is_over() => undecided("the effort ended before what was seen could be replayed"),
            PropertyOutcome::Violated { node, .. } if !confirms(model, e, *node, cel, word == "never") => {
                not_confirmed(*node)
            }
            PropertyOutcome::NeverReached { lasso } if replay(model.machine, &lasso.moves, &e.replays).is_none() => {
                unconfirmed(&lasso.moves)
            }
            PropertyOutcome::NeverReached { lasso } if repeat_a_key(model.machine, &lasso.twice()) => {
                unconfirmed(&lasso.twice())
            }
            PropertyOutcome::Error { node, .. } if e.snapshot(model.machine, *node).is_none() => not_confirmed(*node),
            PropertyOutcome::Violated { node, event } => {
                let (_, names) = e.where_is(model, *node);
                let holds = if word == "never" { "holds" } else { "does not hold" };
                let before = event.as_ref().map(|e| format!(", before `{e}` was accepted")).unwrap_or_default();
                let message = format!("property `{id}` is violated: `{cel}` {holds} in {names}{before}");
                violated(message).witness(model.machine, &to(*node))
            }
            PropertyOutcome::NeverReached { lasso } => {
                let how = match lasso.repeats {
                    0 => "then the run ends or waits for events from outside only".to_string(),
                    1 => "then the last event repeats forever".to_string(),
                    n => format!("then the last {n} events repeat forever"),
                };
                let message = format!(
                    "property `{id}` is violated: `{cel}` never holds on the path of the counterexample; {how}"
                );
                violated(message).witness(model.machine, &lasso.moves)
            }
            PropertyOutcome::Error { node, message } => {
                let (_, names) = e.where_is(model, *node);
                let message = format!("property `{id}` cannot be evaluated in {names}: {message}");
                Finding::new(Severity::Error, codes::PROPERTY_FAILS, &at, message)
                    .verdict(Verdict::Violated)
                    .help("test first whether the value exists, with `has(...)` or `in`")
                    .witness(model.machine, &to(*node))
            }
        });
    }
}

/// Whether a property has the bad value in an explored state, asked again of the kernel.
fn confirms(model: &Model<'_>, e: &Exploration, node: u32, cel: &str, bad: bool) -> bool {
    let machine = model.machine;
    let now = e.predecessors.moves(node).last().map_or(0, |how| how.at);
    let (Some(snapshot), Ok(query)) = (e.snapshot(machine, node), machine.query(cel)) else {
        return false;
    };
    machine.ask(&snapshot, "root", &query, now).is_ok_and(|answer| answer == bad)
}

/// Says what an exploration that decides nothing has tried.
fn tried(explored: &Explored) -> String {
    let count = |n: usize, one: &str, many: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    format!(
        "in {} with up to {} and {} per event",
        count(explored.states, "state", "states"),
        count(explored.principals, "principal", "principals"),
        count(explored.data, "value of the data", "values of the data")
    )
}

/// The first thing that keeps the exploration from being complete.
fn obstacle(explored: &Explored) -> &str {
    explored.cut.first().map_or("the exploration is not complete", String::as_str)
}
