//! Authority: missing roles, and roles that no sender can have.

use charter_expr::ast::{BinaryOp, Kind, Literal, Node};
use charter_expr::did_you_mean;
use charter_kernel::definition::{BUILT_IN_ROLES, StateKind};

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::Item;
use crate::model::{Chart, Model, Transition, Trigger, escape, is_platform, matches};

/// Reports roles that an expression asks for, as in `'auditor' in by.roles`, and that are not
/// declared.
pub(crate) fn unknown(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let known = || model.def.roles.keys().map(String::as_str).chain(BUILT_IN_ROLES);
    let names = || known().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    model.visit_all(&mut |at, item| {
        let Item::Cel(cel) = item else { return };
        let Some(ast) = model.ast(cel) else { return };
        crate::tree::comparisons(ast.root(), &mut |left, op, right| {
            let (BinaryOp::In, Kind::Literal(Literal::String(role))) = (op, &left.kind) else { return };
            if !asks_for_roles(right) || known().any(|name| name == role.as_ref()) {
                return;
            }
            let help = did_you_mean(role, known());
            findings.push(
                Finding::new(Severity::Error, codes::UNKNOWN_ROLE, at, format!("no role named `{role}`"))
                    .bytes(left.span.start, left.span.end)
                    .help(help.unwrap_or_else(|| format!("declare it under `roles`; known: {}", names()))),
            );
        });
    });
}

/// Whether an expression is `by.roles`.
fn asks_for_roles(node: &Node) -> bool {
    crate::tree::path_of(node).is_some_and(|(root, fields)| root == "by" && fields == ["roles"])
}

/// Whether the transition requires no role.
fn is_free(t: &Transition<'_>) -> bool {
    t.def.by.is_empty() && t.def.quorum.as_ref().is_none_or(|q| q.of.is_none())
}

/// Reports events and transitions that require no role, in a charter that declares roles.
pub(crate) fn owners(model: &Model<'_>, findings: &mut Vec<Finding>) {
    if !model.has_roles() {
        return;
    }
    let listening = |name: &str| {
        let name = name.to_string();
        model
            .charts
            .iter()
            .flat_map(|c| &c.transitions)
            .filter(move |t| matches!(t.trigger, Trigger::On(d) if d.iter().any(|d| matches(d, &name))))
            .collect::<Vec<_>>()
    };
    let mut reported: Vec<&str> = Vec::new();
    for (name, decl) in model.def.events.iter().filter(|(_, e)| e.by.is_empty()) {
        let takers = listening(name);
        let mixed = takers.iter().any(|t| !is_free(t));
        for t in takers.iter().filter(|t| is_free(t)) {
            if mixed {
                // Other transitions for the event require a role, so the author probably forgot it
                // here.
                if !reported.contains(&t.at) {
                    reported.push(t.at);
                    let message =
                        format!("any principal may take this transition: neither it nor the event `{name}` has `by`");
                    findings.push(
                        Finding::new(Severity::Warning, codes::TRANSITION_WITHOUT_BY, t.at, message)
                            .help("add `by: ROLE` here or under the event"),
                    );
                }
            } else if decl.by.is_empty() {
                let message =
                    format!("any principal may send `{name}`: neither the event nor its transitions have `by`");
                let at = format!("/events/{}", escape(name));
                findings.push(
                    Finding::new(Severity::Warning, codes::EVENT_WITHOUT_OWNER, at, message)
                        .help("add `by: ROLE` under the event"),
                );
                break;
            }
        }
    }
    // A charter that is not strict accepts undeclared events.
    for t in
        model.charts.iter().flat_map(|c| &c.transitions).filter(|t| !model.def.strict && t.is_external() && is_free(t))
    {
        let Trigger::On(descriptors) = t.trigger else {
            continue;
        };
        if descriptors.iter().all(|d| !d.contains('*') && !is_platform(d) && !model.def.events.contains_key(d)) {
            let message = "any principal may take this transition: its event is not declared and it has no `by`";
            findings.push(
                Finding::new(Severity::Warning, codes::TRANSITION_WITHOUT_BY, t.at, message)
                    .help("add `by: ROLE`, or declare the event"),
            );
        }
    }
}

/// Reports `by` on a transition for platform events, or without an event.
pub(crate) fn platform(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for t in model.charts.iter().flat_map(|c| &c.transitions) {
        let of_platform = match t.trigger {
            Trigger::On(descriptors) => descriptors.iter().all(|d| is_platform(d)),
            _ => true,
        };
        if !of_platform || t.def.by.is_empty() || t.def.by.iter().any(|r| r == "system") {
            continue;
        }
        let message = format!(
            "this transition can never be taken: it waits for {}, which does not have the role {}",
            trigger_name(t),
            t.def.by.join(" or ")
        );
        findings.push(
            Finding::new(Severity::Error, codes::BY_WITHOUT_SYSTEM, t.at, message)
                .help("remove `by`, or add `system` to it"),
        );
    }
}

fn trigger_name(t: &Transition<'_>) -> &'static str {
    match t.trigger {
        Trigger::Always => "no event",
        Trigger::After => "a timer",
        Trigger::StateDone => "the completion of its state",
        Trigger::InvokeDone(_) => "the answer of an actor",
        Trigger::InvokeError(_) => "the failure of an actor",
        Trigger::On(_) => "an event of the platform",
    }
}

/// Whether a principal can have the roles that the event and the transition require.
fn has_possible_sender(model: &Model<'_>, t: &Transition<'_>) -> bool {
    let possible = |by: &[String]| by.is_empty() || by.iter().any(|r| r != "system");
    let Trigger::On(descriptors) = t.trigger else {
        return true;
    };
    let of = t.def.quorum.as_ref().and_then(|q| q.of.as_deref()).is_none_or(|of| of != "system");
    let events = descriptors.iter().any(|d| {
        let mut declared = model.def.events.iter().filter(|(name, _)| matches(d, name)).peekable();
        declared.peek().is_none() || declared.any(|(_, e)| possible(&e.by))
    });
    possible(&t.def.by) && of && events
}

/// Reports states that can only be left by events from outside that are restricted to `system`.
pub(crate) fn nobody(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for state in chart.numbers().filter(|s| chart.state(*s).kind == StateKind::Atomic) {
            let exits: Vec<&Transition<'_>> = outgoing(chart, state);
            let waits = !exits.is_empty() && exits.iter().all(|t| t.is_external());
            let invokes = chart.upwards(state).any(|s| !chart.state(s).def.invoke.is_empty());
            let raised = || exits.iter().any(|t| super::unused::is_raised(model, t));
            if !waits || invokes || exits.iter().any(|t| has_possible_sender(model, t)) || raised() {
                continue;
            }
            let message = format!(
                "no principal can lead the run out of {}: its events are restricted to `system`, a role that no sender has",
                chart.label(state)
            );
            let help = "allow one of its events for a role that a sender can have, or add `after`";
            findings.push(
                Finding::new(Severity::Error, codes::NOBODY_CAN_LEAVE, &chart.state(state).at, message).help(help),
            );
        }
    }
}

/// The transitions that exit a state, including those of its ancestors.
fn outgoing<'m, 'd>(chart: &'m Chart<'d>, state: u32) -> Vec<&'m Transition<'d>> {
    let of = |s: u32| chart.state(s).transitions.iter().map(|t| chart.transition(*t));
    chart.upwards(state).flat_map(of).filter(|t| !t.targets.is_empty()).collect()
}

/// Reports quorums of several principals that require no role.
pub(crate) fn quorums(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for t in model.charts.iter().flat_map(|c| &c.transitions) {
        let Some(quorum) = t.def.quorum.as_ref().filter(|q| q.count > 1 && q.of.is_none() && t.def.by.is_empty())
        else {
            continue;
        };
        let Trigger::On(descriptors) = t.trigger else {
            continue;
        };
        let owned = |d: &String| model.def.events.iter().any(|(name, e)| matches(d, name) && !e.by.is_empty());
        if descriptors.iter().any(owned) {
            continue;
        }
        let message = format!("any {} principals satisfy this quorum: no role is required", quorum.count);
        let at = format!("{}/quorum", t.at);
        findings.push(
            Finding::new(Severity::Warning, codes::QUORUM_OF_ANYBODY, at, message)
                .help(format!("write `quorum: {{count: {}, of: ROLE}}`", quorum.count)),
        );
    }
}
