//! Conditions that do not depend on the values that they seem to depend on.

use charter_expr::Program;
use rustc_hash::FxHashSet;

use crate::codes;
use crate::finding::{Finding, Severity};
use crate::model::Model;
use crate::model::walk::{Item, variable_of};

/// Reports conditions that read nothing.
pub(crate) fn constant(model: &Model<'_>, findings: &mut Vec<Finding>) {
    let mut seen = FxHashSet::default();
    for chart in &model.charts {
        for t in &chart.transitions {
            model.visit_condition(t.def, t.at, &mut |at, item| {
                let Item::Cel(cel) = item else { return };
                let condition = at.ends_with("/when") || at.contains("/guard") || at.starts_with("/guards/");
                if !condition || !seen.insert(at.to_string()) {
                    return;
                }
                let Ok(program) = Program::compile(cel, &charter_expr::Env::new()) else {
                    return;
                };
                let value = program.eval(&(), &mut charter_expr::Fuel::default()).ok().and_then(|v| v.as_bool());
                let Some(value) = value.filter(|_| program.reads().is_empty()) else {
                    return;
                };
                let help = if value {
                    "remove the condition; the transition is always enabled"
                } else {
                    "the transition is never taken; remove it, or change the condition"
                };
                findings.push(
                    Finding::new(
                        Severity::Warning,
                        codes::CONSTANT_CONDITION,
                        at,
                        format!("this condition is always {value}"),
                    )
                    .help(help),
                );
            });
        }
    }
}

/// Reports guards that read a variable assigned by the actions of the same transition: the guard
/// sees the old value.
pub(crate) fn reads_before_assign(model: &Model<'_>, findings: &mut Vec<Finding>) {
    for chart in &model.charts {
        for t in &chart.transitions {
            // Variables that are set from the event and not from their own old value, unlike a
            // counter.
            let mut fresh: FxHashSet<String> = FxHashSet::default();
            model.visit_block(&t.def.actions, t.at, &mut |_, item| {
                let Item::Assign(path, value) = item else {
                    return;
                };
                // An entry under a computed key does not change the values that the condition
                // reads.
                if path.contains('[') {
                    return;
                }
                let variable = variable_of(path);
                let cels = Model::cels(value);
                let from_event = cels.iter().any(|cel| model.reads_root(cel, "event"));
                let from_itself =
                    cels.iter().any(|cel| model.context_reads(cel).iter().flatten().any(|v| v == variable));
                if from_event && !from_itself {
                    fresh.insert(variable.to_string());
                }
            });
            if fresh.is_empty() {
                continue;
            }
            let mut named: Option<String> = None;
            let mut found: Vec<(String, String)> = Vec::new();
            model.visit_condition(t.def, t.at, &mut |at, item| match item {
                Item::Guard(name) => named = Some(name.to_string()),
                Item::Cel(cel) if !at.contains("/requires/") => {
                    let who =
                        if at.starts_with("/guards/") { named.as_ref().map(|n| format!("guard `{n}`")) } else { None };
                    for variable in model.context_reads(cel).into_iter().flatten().filter(|v| fresh.contains(v)) {
                        let who = who.clone().unwrap_or_else(|| "this condition".to_string());
                        let entry = (who, variable);
                        if !found.contains(&entry) {
                            found.push(entry);
                        }
                    }
                }
                _ => {}
            });
            for (who, variable) in found {
                let message = format!(
                    "{who} reads `context.{variable}`, which this transition assigns afterwards: it sees the old value"
                );
                let help = "read the new value from `event`, or decide in a later state (`always`)";
                findings.push(Finding::new(Severity::Warning, codes::GUARD_BEFORE_ASSIGN, t.at, message).help(help));
            }
        }
    }
}
