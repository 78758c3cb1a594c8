//! Who may do what: roles that are missing, and roles that can never be there.

use charter_kernel::definition::StateKind;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::{Chart, Model, Transition, Trigger, escape, is_platform, matches};

/// Whether nobody in particular is asked for.
fn is_free(t: &Transition<'_>) -> bool {
    t.def.by.is_empty() && t.def.quorum.as_ref().is_none_or(|q| q.of.is_none())
}

/// Events and transitions without an owner, in a charter that has roles.
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
                // Others of its transitions say who: this one was forgotten.
                if !reported.contains(&t.at) {
                    reported.push(t.at);
                    let message =
                        format!("anybody may take this transition: neither it nor the event `{name}` says `by`");
                    findings.push(
                        Finding::new(Severity::Warning, codes::TRANSITION_WITHOUT_BY, t.at, message)
                            .help("add `by: ROLE` here or under the event"),
                    );
                }
            } else if decl.by.is_empty() {
                let message =
                    format!("anybody may send `{name}`: neither the event nor the transitions it takes say `by`");
                let at = format!("/events/{}", escape(name));
                findings.push(
                    Finding::new(Severity::Warning, codes::EVENT_WITHOUT_OWNER, at, message)
                        .help("add `by: ROLE` under the event"),
                );
                break;
            }
        }
    }
    // What a lenient charter takes without a declaration.
    for t in
        model.charts.iter().flat_map(|c| &c.transitions).filter(|t| !model.def.strict && t.is_external() && is_free(t))
    {
        let Trigger::On(descriptors) = t.trigger else {
            continue;
        };
        if descriptors.iter().all(|d| !d.contains('*') && !is_platform(d) && !model.def.events.contains_key(d)) {
            let message = "anybody may take this transition: its event is not declared and it says no `by`";
            findings.push(
                Finding::new(Severity::Warning, codes::TRANSITION_WITHOUT_BY, t.at, message)
                    .help("add `by: ROLE`, or declare the event"),
            );
        }
    }
}

/// `by` on a transition that only the platform's events (or none) can take.
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
            "this transition can never be taken: it waits for {}, which no {} sends",
            what(t),
            t.def.by.join(" or ")
        );
        findings.push(
            Finding::new(Severity::Error, codes::BY_WITHOUT_SYSTEM, t.at, message)
                .help("remove `by`, or add `system` to it"),
        );
    }
}

fn what(t: &Transition<'_>) -> &'static str {
    match t.trigger {
        Trigger::Always => "no event at all",
        Trigger::After => "time to pass",
        Trigger::StateDone => "the completion of its state",
        Trigger::InvokeDone(_) => "the answer of an actor",
        Trigger::InvokeError(_) => "the failure of an actor",
        Trigger::On(_) => "an event of the platform",
    }
}

/// Can a principal with some roles satisfy both?
fn somebody(model: &Model<'_>, t: &Transition<'_>) -> bool {
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

/// A state that waits for nothing but events that only `system` may send, from outside.
pub(crate) fn nobody(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for state in chart.numbers().filter(|s| chart.state(*s).kind == StateKind::Atomic) {
            let ways: Vec<&Transition<'_>> = ways_out(chart, state);
            let waits = !ways.is_empty() && ways.iter().all(|t| t.is_external());
            let works = chart.upwards(state).any(|s| !chart.state(s).def.invoke.is_empty());
            let raised = || ways.iter().any(|t| super::unused::is_raised(model, t));
            if !waits || works || ways.iter().any(|t| somebody(model, t)) || raised() {
                continue;
            }
            let message = format!(
                "nobody can lead the run out of {}: its events are for `system` only, and no event from outside has that role",
                chart.label(state)
            );
            let help = "give one of its events a role that somebody has, or add `after`";
            findings.push(
                Finding::new(Severity::Error, codes::NOBODY_CAN_LEAVE, &chart.state(state).at, message).help(help),
            );
        }
    }
}

/// Transitions that leave a state, its ancestors' among them.
fn ways_out<'m, 'd>(chart: &'m Chart<'d>, state: u32) -> Vec<&'m Transition<'d>> {
    let of = |s: u32| chart.state(s).transitions.iter().map(|t| chart.transition(*t));
    chart.upwards(state).flat_map(of).filter(|t| !t.targets.is_empty()).collect()
}

/// A quorum of several where anybody counts.
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
        let message = format!("any {} principals make this quorum: nothing says whose votes count", quorum.count);
        let at = format!("{}/quorum", t.at);
        findings.push(
            Finding::new(Severity::Warning, codes::QUORUM_OF_ANYBODY, at, message)
                .help(format!("write `quorum: {{count: {}, of: ROLE}}`", quorum.count)),
        );
    }
}
