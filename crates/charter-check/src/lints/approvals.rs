//! Lints for approvals: they must expire, and `not_by` must be able to exclude somebody.

use charter_kernel::definition::Template;
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

use super::context::assigned;
use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::Model;

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
