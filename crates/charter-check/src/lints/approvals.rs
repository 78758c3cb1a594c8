//! Lints for approvals: they must expire, `not_by` must be able to exclude somebody, and the
//! approved value must not change before it is used.

use charter_kernel::definition::Template;
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

use super::context::assigned;
use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::walk::{Item, template, variable_of};
use crate::model::{Chart, Model};

pub(crate) fn expiry(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        for t in chart.transitions.iter().filter(|t| t.def.approves.is_some()) {
            let ends = chart.upwards(t.source).any(|s| !chart.state(s).def.after.is_empty());
            if ends || !seen.insert(t.source) {
                continue;
            }
            let message = format!("{} waits for an approval without a time limit", chart.label(t.source));
            let help = "add `after: {24h: {target: ...}}` that leads to a refusal or an escalation";
            findings.push(
                Finding::new(Severity::Warning, codes::APPROVAL_WITHOUT_EXPIRY, &chart.state(t.source).at, message)
                    .help(help),
            );
        }
    }
}

/// Reports a `not_by` whose value is always null or an empty list.
pub(crate) fn excludes_nobody(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let assigned = assigned(model);
    for chart in &model.charts {
        // A variable that nothing changes keeps a first value that names nobody.
        let empty = |name: &String| match chart.def.context.get(name) {
            Some(Template::Literal(value)) => names_nobody(value) && !assigned.contains(name) && model.def.strict,
            _ => false,
        };
        for t in &chart.transitions {
            let Some(cel) = &t.def.not_by else { continue };
            let Some(ast) = model.ast(cel) else { continue };
            let value = charter_expr::Program::compile(cel, &charter_expr::Env::new()).ok();
            let constant = value.filter(|p| p.reads().is_empty()).is_some_and(|program| {
                let value = program.eval(&(), &mut charter_expr::Fuel::default()).and_then(|v| v.to_json());
                value.is_ok_and(|value| names_nobody(&value))
            });
            let variable = matches!(crate::tree::path_of(ast.root()), Some((root, fields))
                if root == "context" && fields.len() == 1 && fields.first().is_some_and(empty));
            if constant || variable {
                let message = format!("`not_by` excludes nobody: `{cel}` is always empty");
                let help =
                    "name the principal whose proposal is approved, for example a variable that is set to `= by.id`";
                let at = format!("{}/not_by", t.at);
                findings.push(Finding::new(Severity::Warning, codes::NOT_BY_NOBODY, at, message).help(help));
            }
        }
    }
}

fn names_nobody(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(ids) => ids.iter().all(Json::is_null),
        _ => false,
    }
}

/// Reports assignments to the variables that an approval covers, if they happen after the approval
/// and before the first state that uses the variables.
pub(crate) fn overwritten(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for (number, t) in chart.all() {
            let Some(cel) = &t.def.approves else { continue };
            let covered: FxHashSet<String> = model.context_reads(cel).into_iter().flatten().collect();
            if covered.is_empty() {
                continue;
            }
            let mut found: Vec<(String, String)> = Vec::new();
            follow(model, chart, number, &covered, &mut found);
            for (at, variable) in found {
                let message =
                    format!("`context.{variable}` is assigned after `{}` approved it and before it is used", t.name);
                let help = "assign to another variable, or require a new approval";
                findings.push(Finding::new(Severity::Warning, codes::APPROVAL_OVERWRITTEN, at, message).help(help));
            }
        }
    }
}

fn follow<'d>(
    model: &Model<'d>,
    chart: &Chart<'d>,
    approval: u32,
    covered: &FxHashSet<String>,
    found: &mut Vec<(String, String)>,
) {
    let approved = chart.transition(approval);
    assignments(model, &approved.def.actions, &format!("{}/actions", approved.at), covered, found);
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut waiting: Vec<u32> = approved.targets.iter().flat_map(|s| chart.default_leaves(*s)).collect();
    while let Some(leaf) = waiting.pop() {
        // The path is back in a state that needs a new approval, or that was already visited.
        if leaf == approved.source || chart.inside(leaf, approved.source) || !seen.insert(leaf) {
            continue;
        }
        let states: Vec<u32> = chart.upwards(leaf).filter(|s| !chart.inside(approved.source, *s)).collect();
        for s in &states {
            let state = chart.state(*s);
            for (i, block) in state.def.entry.iter().enumerate() {
                assignments(model, block, &format!("{}/entry/{i}", state.at), covered, found);
            }
        }
        if states.iter().any(|s| uses(model, chart, *s, covered)) {
            continue;
        }
        for t in states.iter().flat_map(|s| &chart.state(*s).transitions).map(|t| chart.transition(*t)) {
            assignments(model, &t.def.actions, &format!("{}/actions", t.at), covered, found);
            waiting.extend(t.targets.iter().flat_map(|s| chart.default_leaves(*s)));
        }
    }
}

/// Whether an invocation of the state receives an approved variable as input.
fn uses<'d>(model: &Model<'d>, chart: &Chart<'d>, state: u32, covered: &FxHashSet<String>) -> bool {
    let mut found = false;
    for input in chart.state(state).def.invoke.iter().filter_map(|i| i.input.as_ref()) {
        template(input, "", &mut |_, item| {
            if let Item::Cel(cel) = item {
                found |= model.context_reads(cel).into_iter().any(|v| v.is_none_or(|v| covered.contains(&v)));
            }
        });
    }
    found
}

fn assignments<'d>(
    model: &Model<'d>,
    block: &'d [charter_kernel::definition::Action],
    at: &str,
    covered: &FxHashSet<String>,
    found: &mut Vec<(String, String)>,
) {
    model.visit_block(block, at, &mut |at, item| {
        if let Item::Assign(path, _) = item
            && covered.contains(variable_of(path))
        {
            let entry = (at.to_string(), variable_of(path).to_string());
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    });
}
