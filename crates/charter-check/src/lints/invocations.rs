//! Invocations: missing timeouts, unhandled failures, and errors that are discarded.

use charter_kernel::definition::{Action, Invoke};

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::Item;
use crate::model::{Chart, Model, Transition, Trigger, invocation_id};

/// All invocations of services: chart, state, place, invocation.
fn services<'m, 'd>(model: &'m Model<'d>) -> impl Iterator<Item = (&'m Chart<'d>, u32, String, &'d Invoke)> {
    model.charts.iter().flat_map(move |chart| {
        (0u32..).zip(&chart.states).flat_map(move |(number, state)| {
            let of =
                move |(i, invoke): (usize, &'d Invoke)| (chart, number, format!("{}/invoke/{i}", state.at), invoke);
            state.def.invoke.iter().enumerate().filter(|(_, i)| model.def.actors.contains_key(&i.src)).map(of)
        })
    })
}

pub(crate) fn timeouts(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for (chart, state, at, invoke) in services(model) {
        let of_actor = model.def.actors.get(&invoke.src).is_some_and(|a| a.timeout.is_some());
        let of_state = chart.upwards(state).any(|s| !chart.state(s).def.after.is_empty());
        if invoke.timeout.is_some() || of_actor || of_state {
            continue;
        }
        let message =
            format!("`{}` has no timeout: if its answer is lost, the run waits forever", invocation_id(invoke));
        let help = format!("add `timeout: 60s` here or under `actors.{}`", invoke.src);
        findings.push(Finding::new(Severity::Warning, codes::INVOKE_WITHOUT_TIMEOUT, at, message).help(help));
    }
}

pub(crate) fn errors(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for (chart, state, at, invoke) in services(model) {
        let event = format!("error.invoke.{}", invocation_id(invoke));
        if chart.upwards(state).any(|s| !chart.outline.candidates(s, &event).is_empty()) {
            continue;
        }
        let message = format!("the failure of `{}` is not handled", invocation_id(invoke));
        findings.push(
            Finding::new(Severity::Warning, codes::INVOKE_WITHOUT_ON_ERROR, at, message)
                .help("add `onError` with a target"),
        );
    }
}

/// Reports `onError` transitions that neither keep the error nor enter a state that does.
pub(crate) fn dropped(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for t in &chart.transitions {
            let of_error = match t.trigger {
                Trigger::InvokeError(_) => true,
                Trigger::On(d) => d.iter().all(|d| d.starts_with("error.invoke")),
                _ => false,
            };
            if !of_error || keeps(model, chart, t) {
                continue;
            }
            let message = "the error is discarded: neither this transition nor its target state keeps `event.error`";
            let help = "assign it, for example with `actions: {assign: {error: \"= event.error\"}}`";
            let in_import = "declare an action under `actions` of the charter, such as `keepError: {assign: {error: \"= event.error\"}}`, and write its name into `actions` here";
            let finding = Finding::new(Severity::Warning, codes::ERROR_DROPPED, t.at, message);
            findings.push(finding.help_by_place(help, in_import));
        }
    }
}

fn keeps<'d>(model: &Model<'d>, chart: &Chart<'d>, t: &Transition<'d>) -> bool {
    let mut kept = false;
    let mut visit = |_: &str, item: Item<'_>| {
        kept |= match item {
            Item::Assign(_, value) => Model::cels(value).into_iter().any(mentions_event),
            Item::Action(Action::Log { value, .. }) => Model::cels(value).into_iter().any(mentions_event),
            Item::Action(Action::Raise { data, .. } | Action::Emit { data, .. }) => {
                data.iter().any(|d| Model::cels(d).into_iter().any(mentions_event))
            }
            Item::Action(Action::Send(send)) => {
                send.data.iter().any(|d| Model::cels(d).into_iter().any(mentions_event))
            }
            Item::Action(Action::Open { data, .. } | Action::Grant { data, .. }) => {
                data.iter().any(|d| Model::cels(d).into_iter().any(mentions_event))
            }
            _ => false,
        };
    };
    model.visit_block(&t.def.actions, t.at, &mut visit);
    // Entry actions of the target see the event, too.
    for target in t.targets {
        for s in chart.default_leaves(*target).into_iter().flat_map(|leaf| chart.upwards(leaf).collect::<Vec<_>>()) {
            model.visit_blocks(&chart.state(s).def.entry, "", &mut visit);
        }
    }
    kept
}

/// Whether an expression reads the event's error: `event.error`, or the event as a whole.
fn mentions_event(cel: &str) -> bool {
    let Ok(ast) = charter_expr::parse(cel) else {
        return false;
    };
    ast.reads().iter().any(|p| {
        let first = p.segments().first();
        p.root() == "event"
            && !matches!(first, Some(charter_expr::Segment::Field(f)) if !matches!(f.as_ref(), "error" | "data"))
    })
}
